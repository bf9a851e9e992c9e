/* SPDX-License-Identifier: MIT */
/* Paging of long lists, and the list of decisions; see paging.h. */
#include "paging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view_json.h"

#define DECISIONS_DEFAULT 50
/* Number of decisions that the journal stores. */
#define DECISIONS_KEPT 512

/* ---- the query ---- */

/* Parse the value of parameter `key` into *value. Returns 1 on success, 0 if it is not a whole
 * number from `least` to `most`, and -1 if `key` is missing. */
static int whole(const char *query, const char *key, uint64_t least, uint64_t most, uint64_t *value)
{
	size_t k = strlen(key);

	while (*query) {
		size_t n = strcspn(query, "&");
		if (n > k && strncmp(query, key, k) == 0 && query[k] == '=') {
			size_t digits = strspn(query + k + 1, "0123456789");
			if (digits == 0 || digits > 16 || digits != n - k - 1)
				return 0;
			*value = strtoull(query + k + 1, NULL, 10);
			return *value >= least && *value <= most;
		}
		query += n + (query[n] == '&');
	}
	return -1;
}

bool paging_take(const char *query, int default_limit, struct paging *p, struct reply *r)
{
	static const char *const cursor[] = {"before", "after"};
	static const char *const size[] = {"limit", "n"};
	uint64_t v = (uint64_t)default_limit;

	*p = (struct paging){.limit = default_limit};
	for (int i = 0; i < 2; i++) {
		int is = whole(query, size[i], 1, PAGING_MAX, &v);
		if (is == 0) {
			reply_problem(
			    r, 400, "%s must be a whole number from 1 to %d", size[i], PAGING_MAX);
			return false;
		}
		if (is > 0)
			p->limit = (int)v;
		is = whole(query, cursor[i], 0, PAGING_ID_MAX, &p->id);
		if (is == 0) {
			reply_problem(r, 400,
			    "%s must be the id of a row, or the 'next' of an earlier response",
			    cursor[i]);
			return false;
		}
		if (i == 0)
			p->behind = is > 0;
		else
			p->ahead = is > 0;
	}
	if (p->behind && p->ahead)
		reply_problem(r, 400, "use either before or after, not both");
	return !(p->behind && p->ahead);
}

/* ---- the page ---- */

bool paging_cut(
    struct paging *p, const void *rows, int n, paging_id_fn *id, bool falling, struct reply *r)
{
	int at = 0;

	p->first = 0;
	p->n = n < p->limit ? n : p->limit;
	if (!p->behind && !p->ahead)
		return true;
	while (at < n && (falling ? id(rows, at) > p->id : id(rows, at) != p->id))
		at++;
	bool found = at < n && id(rows, at) == p->id;
	if (!found && !falling) {
		reply_problem(r, 404,
		    "row %llu is no longer in this list: request the list without this id",
		    (unsigned long long)p->id);
		return false;
	}
	if (p->behind) {
		p->first = at + found;
		p->n = n - p->first < p->limit ? n - p->first : p->limit;
	} else {
		p->n = at < p->limit ? at : p->limit;
		p->first = at - p->n;
	}
	return true;
}

json_t *paging_next(const struct paging *p, const void *rows, int n, paging_id_fn *id,
    const char *path, const char *extra)
{
	char next[256];
	bool more = p->ahead ? p->first > 0 : p->first + p->n < n;

	if (!more || p->n == 0)
		return json_null();
	snprintf(next, sizeof(next), "%s?%slimit=%d&%s=%llu", path, extra, p->limit,
	    p->ahead ? "after" : "before",
	    (unsigned long long)id(rows, p->ahead ? p->first : p->first + p->n - 1));
	return json_string(next);
}

/* ---- decisions ---- */

static uint64_t decision_id(const void *rows, int i)
{
	return ((const struct weir_decision *)rows)[i].id;
}

void answer_decisions(const struct call *c, struct reply *r)
{
	struct paging page;

	if (!paging_take(c->query, DECISIONS_DEFAULT, &page, r))
		return;
	struct weir_decision *decision = calloc(DECISIONS_KEPT, sizeof(*decision));
	struct weir_graph_view *v = decision ? take_view(c, r) : NULL;
	if (v) {
		int n = c->source->decisions(c->source->arg, decision, DECISIONS_KEPT);
		paging_cut(&page, decision, n, decision_id, true, r);
		json_t *json = view_json_decisions(v, decision + page.first, page.n);
		if (json)
			json_object_set_new(json, "next",
			    paging_next(&page, decision, n, decision_id, "/api/v1/decisions", ""));
		reply_json(r, 200, json);
		c->source->view_free(v);
	} else if (!decision) {
		reply_problem(r, 503, "out of memory");
	}
	free(decision);
}
