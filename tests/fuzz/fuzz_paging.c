/* SPDX-License-Identifier: MIT */
/*
 * Any query for a list of the admin API: a 400 or a 404 with a message, or a page of the list, from
 * which `next` leads through each of the other rows once and then ends.
 *
 * Input: a byte whose lowest bit selects falling ids and whose other bits are the number of rows; a
 * byte for the gaps between ids; the rest is the query, up to its first NUL.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/api/paging.h"
#include "admin/api/requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 128, QUERY_BYTES = 1024 };

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_paging: %s\n", what);
	abort();
}

static uint64_t id_of(const void *rows, int i)
{
	return ((const uint64_t *)rows)[i];
}

/* The value of the first `key` that has one, up to the next '&', found in another way. *n is its
 * length; -1: none. */
static const char *value_of(const char *query, const char *key, int *n)
{
	char with[16];
	int k = snprintf(with, sizeof(with), "%s=", key);

	*n = -1;
	for (const char *p = query; (p = strstr(p, with)) != NULL; p++) {
		if (p != query && p[-1] != '&')
			continue;
		*n = (int)strcspn(p + k, "&");
		return p + k;
	}
	return NULL;
}

/* Is the value of `key`, if it exists, a number in this range? */
static bool good(const char *query, const char *key, unsigned long long least,
    unsigned long long most, unsigned long long *value)
{
	int n;
	const char *p = value_of(query, key, &n);
	char text[24], *end;

	if (!p)
		return true;
	if (n < 1 || n > 16 || *p < '0' || *p > '9')
		return false;
	snprintf(text, sizeof(text), "%.*s", n, p);
	*value = strtoull(text, &end, 10);
	return !*end && *value >= least && *value <= most;
}

static void check_take(const char *query, bool took, const struct paging *p)
{
	unsigned long long limit = 50, before = 0, after = 0;
	int has_before, has_after;
	bool fine = good(query, "limit", 1, PAGING_MAX, &limit) &&
		    good(query, "n", 1, PAGING_MAX, &limit) &&
		    good(query, "before", 0, PAGING_ID_MAX, &before) &&
		    good(query, "after", 0, PAGING_ID_MAX, &after);

	value_of(query, "before", &has_before);
	value_of(query, "after", &has_after);
	fine = fine && (has_before < 0 || has_after < 0);
	expect(took == fine, "two readers, two verdicts on a query");
	if (!took)
		return;
	expect(p->limit == (int)limit, "another limit");
	expect(p->behind == (has_before >= 0) && p->ahead == (has_after >= 0), "another direction");
	expect(!(p->behind || p->ahead) || p->id == (p->behind ? before : after), "another cursor");
}

/* Follow `next` from `query` on: every page continues the previous one. Returns the number of
 * rows. */
static int follow(const char *query, const uint64_t *rows, int n, bool falling)
{
	char next[1024]; /* the longest query allowed */
	int seen = 0, edge = -1;

	snprintf(next, sizeof(next), "%s", query);
	for (int pages = 0; pages == 0 || *next; pages++) {
		struct reply reply = {0};
		struct paging p;
		expect(pages <= ROWS, "next leads on and on");
		expect(paging_take(next, 50, &p, &reply) &&
			   paging_cut(&p, rows, n, id_of, falling, &reply),
		    "next leads nowhere");
		expect(p.first >= 0 && p.n >= 0 && p.first + p.n <= n && p.n <= p.limit, "no page");
		expect(edge < 0 || p.n > 0, "next leads to an empty page");
		expect(edge < 0 || edge == (p.ahead ? p.first + p.n : p.first), "a gap");
		edge = p.ahead ? p.first : p.first + p.n;
		seen += p.n;
		json_t *json = paging_next(&p, rows, n, id_of, "/x", "class=a&");
		const char *text = json_string_value(json);
		snprintf(next, sizeof(next), "%s", text ? strchr(text, '?') + 1 : "");
		json_decref(json);
	}
	return seen;
}

static void check_text(const char *query)
{
	char buf[16];
	int n;
	const char *p = value_of(query, "class", &n);
	bool whole = query_text(query, "class", buf, sizeof(buf));

	expect(whole == (n < (int)sizeof(buf)), "a text of another length");
	if (whole)
		expect(
		    strlen(buf) == (p ? (size_t)n : 0) && memcmp(buf, p ? p : "", strlen(buf)) == 0,
		    "another text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t rows[ROWS];
	char query[QUERY_BYTES];
	struct reply reply = {0};
	struct paging p;

	if (size < 2)
		return 0;
	bool falling = data[0] & 1;
	int n = data[0] >> 1;
	for (int i = 0; i < n; i++) {
		uint64_t at = (uint64_t)(falling ? n - i : i + 1) * (1 + data[1] % 7);
		rows[i] = falling ? at : at ^ data[1];
	}
	snprintf(query, sizeof(query), "%.*s", (int)(size - 2), (const char *)data + 2);
	check_text(query);
	bool took = paging_take(query, 50, &p, &reply);
	check_take(query, took, &p);
	if (took && paging_cut(&p, rows, n, id_of, falling, &reply)) {
		expect(reply.status == 0, "an answer and a page");
		int seen = strlen(query) < 256 ? follow(query, rows, n, falling) : n;
		expect(p.behind || p.ahead || seen == n, "rows that no page has");
	} else {
		expect(reply.status == (took ? 404 : 400) && reply.n > 0, "refused without a word");
		expect(!took || !falling, "a list with places for all ids");
	}
	reply_fini(&reply);
	return 0;
}
