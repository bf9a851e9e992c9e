/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what http.cache reads of strangers: the first byte chooses Cache-Control, the fields of an answer,
 * Vary with the values of a request, or a URL. Cache-Control is never less strict if a line is added. A key made of a
 * URL is normal: the key as a URL gives the same key, and it has no control byte. Names of Vary are sorted, each
 * once.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/cache/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_cache: %s\n", what);
	abort();
}

static void check_range(int64_t s)
{
	expect(s >= HCACHE_ABSENT && s <= HCACHE_SECONDS_MAX, "a number is out of range");
}

static bool no_laxer(int64_t before, int64_t after)
{
	return before == HCACHE_ABSENT || (after != HCACHE_ABSENT && after <= before);
}

/* The first line, then both lines. */
static void check_control(struct weir_slice text)
{
	const char *nl = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;
	size_t n = nl ? (size_t)(nl - text.p) : text.n;
	struct hcache_control one, both;

	hcache_control_init(&one);
	hcache_control_add(&one, (struct weir_slice){text.p, n});
	hcache_control_init(&both);
	hcache_control_add(&both, (struct weir_slice){text.p, n});
	if (nl)
		hcache_control_add(&both, (struct weir_slice){nl + 1, text.n - n - 1});
	check_range(both.max_age_s);
	check_range(both.s_maxage_s);
	check_range(both.max_stale_s);
	check_range(both.min_fresh_s);
	check_range(both.stale_while_revalidate_s);
	check_range(both.stale_if_error_s);
	expect(no_laxer(one.max_age_s, both.max_age_s), "max-age is laxer");
	expect(no_laxer(one.s_maxage_s, both.s_maxage_s), "s-maxage is laxer");
	expect(both.min_fresh_s >= one.min_fresh_s, "min-fresh is laxer");
	expect(both.no_store >= one.no_store && both.no_cache >= one.no_cache &&
		   both.is_private >= one.is_private,
	    "a flag is gone");
	expect(both.n_lists <= HCACHE_LISTS, "too many lists");
	hcache_control_lists(&both, (struct weir_slice){"set-cookie", 10});
}

static void check_names(const struct hcache_vary *v)
{
	struct weir_slice before = {NULL, 0};

	expect(v->n <= sizeof(v->names), "too many names");
	expect(v->n == 0 || v->names[v->n - 1] == '\n', "a name without an end");
	for (size_t at = 0; at < v->n;) {
		const char *eol = memchr(v->names + at, '\n', v->n - at);
		struct weir_slice name = {v->names + at, (size_t)(eol - (v->names + at))};
		size_t least = before.n < name.n ? before.n : name.n;
		int order = before.p ? memcmp(before.p, name.p, least) : -1;
		expect(name.n > 0, "an empty name");
		expect(order < 0 || (order == 0 && before.n < name.n), "names are not sorted");
		before = name;
		at += name.n + 1;
	}
}

static void check_answer(struct weir_http_request *req, struct weir_slice text)
{
	struct hcache_heuristic h = {0.1, 3600};
	struct hcache_answer a;

	req->res.status = 200;
	req->res.fields = text;
	hcache_answer_read(&a, req, 0);
	hcache_answer_time(&a, &h, 784111777, 1000000000);
	check_range(a.age_s);
	check_range(a.lifetime_s);
	expect(a.age_s >= 1 && a.lifetime_s >= 0, "a time is negative");
	for (int asker = 0; asker < 4; asker++) {
		struct hcache_asker by = {asker & 1, asker & 2};
		enum hcache_verdict v = hcache_answer_judge(&a, &by);
		expect(v != HCACHE_STORE ||
			   (!a.control.no_store && !a.control.is_private && !a.vary.any),
		    "what must not be stored is stored");
	}
	check_names(&a.vary);
}

/* The first line is Vary, the second the value of a field of a request, the rest that of another. */
static void check_vary(struct weir_http_request *req, struct weir_slice text)
{
	static const char *const fields[] = {"accept-encoding", "x"};
	struct weir_http_header headers[2];
	struct hcache_vary v = {0};
	static struct hcache_key k, again;
	struct weir_slice part[3] = {{"", 0}, {"", 0}, {"", 0}};

	for (int i = 0; i < 3 && text.n > 0; i++) {
		const char *nl = i < 2 ? memchr(text.p, '\n', text.n) : NULL;
		part[i] = (struct weir_slice){text.p, nl ? (size_t)(nl - text.p) : text.n};
		size_t skip = part[i].n + (nl != NULL);
		text = (struct weir_slice){text.p + skip, text.n - skip};
	}
	hcache_vary_add(&v, part[0]);
	check_names(&v);
	for (int i = 0; i < 2; i++)
		headers[i] = (struct weir_http_header){{fields[i], strlen(fields[i])}, part[i + 1]};
	req->headers = headers;
	req->n_headers = 2;
	k.n = again.n = 0;
	static const struct weir_slice names = {"accept-encoding\nx\n", 18};
	bool good = hcache_key_vary(&k, req, names, 1);
	expect(good == hcache_key_vary(&again, req, names, 1) && k.n == again.n &&
		   memcmp(k.p, again.p, k.n) == 0,
	    "two keys of one request");
	expect(good || k.n == 0, "a key that does not fit was changed");
	req->n_headers = 0;
}

static void check_url(struct weir_slice text)
{
	static struct hcache_key k, again;

	if (!hcache_key_of_url(text, NULL, &k))
		return;
	expect(k.n <= sizeof(k.p), "a key is too long");
	for (size_t i = 0; i < k.n; i++)
		expect((unsigned char)k.p[i] > ' ' && k.p[i] != 0x7f && k.p[i] != '#',
		    "a byte of a key");
	expect(hcache_key_of_url(hcache_key_text(&k), NULL, &again), "a key is no URL");
	expect(k.n == again.n && memcmp(k.p, again.p, k.n) == 0, "a key is not normal");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *exact = malloc(size); /* so that ASan sees a read beyond the end */
	memcpy(exact, data + 1, size - 1);
	struct weir_slice text = {exact, size - 1};
	struct weir_http_request *req = calloc(1, weir_http_request_type.size);
	switch (data[0] % 4) {
	case 0:
		check_control(text);
		break;
	case 1:
		check_answer(req, text);
		break;
	case 2:
		check_vary(req, text);
		break;
	default:
		check_url(text);
	}
	free(req);
	free(exact);
	return 0;
}
