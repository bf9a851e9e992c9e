/* SPDX-License-Identifier: MIT */
/* Pages of long lists, and entity tags. */
#include "admin/api/paging.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"
#include "admin/request/etag.h"

static struct reply reply;

static bool take(const char *query, struct paging *page)
{
	reply_fini(&reply);
	return paging_take(query, 50, page, &reply);
}

static void test_take(void)
{
	static const char *const bad[] = {"limit=", "limit=0", "limit=501", "limit=1.5", "limit=-1",
	    "limit=x", "n=0", "n=501", "before=", "before=x", "before=-1",
	    "before=9007199254740992", "before=99999999999999999999", "after=1x",
	    "before=1&after=2", "limit=1 "};
	struct paging p;

	CU_ASSERT_TRUE(take("", &p) && p.limit == 50 && !p.behind && !p.ahead);
	CU_ASSERT_TRUE(take("n=7", &p) && p.limit == 7);
	CU_ASSERT_TRUE(take("x=1&limit=500&before=9007199254740991", &p));
	CU_ASSERT_TRUE(p.limit == 500 && p.behind && p.id == PAGING_ID_MAX);
	CU_ASSERT_TRUE(take("after=0", &p) && p.ahead && p.id == 0);
	CU_ASSERT_TRUE(take("xlimit=0", &p) && p.limit == 50);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_FALSE(take(bad[i], &p));
		CU_ASSERT_EQUAL(reply.status, 400);
	}
	reply_fini(&reply);
}

static uint64_t id_of(const void *rows, int i)
{
	return ((const uint64_t *)rows)[i];
}

/* Follow `next`, starting from `query`. Collects the ids in order; returns the number of pages. */
static int follow(const char *query, const uint64_t *rows, int n, uint64_t *seen, int *n_seen)
{
	char next[256];
	int pages = 0;

	*n_seen = 0;
	snprintf(next, sizeof(next), "%s", query);
	while (*next && pages < 100) {
		struct paging p;
		CU_ASSERT_TRUE_FATAL(take(next, &p));
		CU_ASSERT_TRUE_FATAL(paging_cut(&p, rows, n, id_of, true, &reply));
		for (int i = 0; i < p.n; i++)
			seen[(*n_seen)++] = rows[p.first + i];
		json_t *json = paging_next(&p, rows, n, id_of, "/x", "class=a&");
		const char *text = json_string_value(json);
		if (text)
			CU_ASSERT_EQUAL(strncmp(text, "/x?class=a&limit=", 17), 0);
		snprintf(next, sizeof(next), "%s", text ? strchr(text, '?') + 1 : "");
		json_decref(json);
		pages++;
	}
	return pages;
}

static void test_follow(void)
{
	uint64_t rows[10], seen[100];
	int n_seen;

	for (int i = 0; i < 10; i++)
		rows[i] = (uint64_t)(20 - i); /* 20 .. 11 */
	CU_ASSERT_EQUAL(follow("limit=3", rows, 10, seen, &n_seen), 4);
	CU_ASSERT_EQUAL(n_seen, 10);
	CU_ASSERT_EQUAL(memcmp(seen, rows, sizeof(rows)), 0);
	/* no empty page at the end */
	CU_ASSERT_EQUAL(follow("limit=5", rows, 10, seen, &n_seen), 2);
	/* new rows do not shift the page, and a row that is gone keeps its position */
	CU_ASSERT_EQUAL(follow("limit=50&before=16", rows + 5, 5, seen, &n_seen), 1);
	CU_ASSERT_TRUE(n_seen == 5 && seen[0] == 15);
	/* with `after`, the rows next to the cursor come first */
	CU_ASSERT_EQUAL(follow("limit=4&after=11", rows, 10, seen, &n_seen), 3);
	CU_ASSERT_EQUAL(n_seen, 9);
	CU_ASSERT_TRUE(seen[0] == 15 && seen[3] == 12 && seen[4] == 19 && seen[8] == 20);
	CU_ASSERT_EQUAL(follow("after=20", rows, 10, seen, &n_seen), 1);
	CU_ASSERT_EQUAL(n_seen, 0);
	CU_ASSERT_EQUAL(follow("before=11", rows, 10, seen, &n_seen), 1);
	CU_ASSERT_EQUAL(n_seen, 0);
	CU_ASSERT_EQUAL(follow("limit=50", rows, 0, seen, &n_seen), 1);
	CU_ASSERT_EQUAL(n_seen, 0);
	reply_fini(&reply);
}

/* Where ids are not in falling order, the row of the cursor must exist. */
static void test_mixed(void)
{
	const uint64_t rows[] = {7, 3, 9, 1};
	struct paging p;

	CU_ASSERT_TRUE(take("limit=2&before=3", &p));
	CU_ASSERT_TRUE(paging_cut(&p, rows, 4, id_of, false, &reply));
	CU_ASSERT_TRUE(p.first == 2 && p.n == 2);
	CU_ASSERT_TRUE(take("limit=2&after=9", &p));
	CU_ASSERT_TRUE(paging_cut(&p, rows, 4, id_of, false, &reply));
	CU_ASSERT_TRUE(p.first == 0 && p.n == 2);
	CU_ASSERT_TRUE(take("before=4", &p));
	CU_ASSERT_FALSE(paging_cut(&p, rows, 4, id_of, false, &reply));
	CU_ASSERT_EQUAL(reply.status, 404);
	reply_fini(&reply);
}

static void test_matches(void)
{
	CU_ASSERT_FALSE(etag_matches(NULL, "\"a\""));
	CU_ASSERT_FALSE(etag_matches("", "\"a\""));
	CU_ASSERT_TRUE(etag_matches("\"a\"", "\"a\""));
	CU_ASSERT_TRUE(etag_matches("W/\"a\"", "\"a\""));
	CU_ASSERT_TRUE(etag_matches("\"b\", \"a\"", "\"a\""));
	CU_ASSERT_TRUE(etag_matches(" \"b\" ,W/\"a\"", "\"a\""));
	CU_ASSERT_TRUE(etag_matches("*", "\"a\""));
	CU_ASSERT_FALSE(etag_matches("\"ab\"", "\"a\""));
	CU_ASSERT_FALSE(etag_matches("a", "\"a\""));
	CU_ASSERT_FALSE(etag_matches("\"a", "\"a\""));
	CU_ASSERT_FALSE(etag_matches(",,,", "\"a\""));
}

static void test_apply(void)
{
	char tag[sizeof(reply.etag)];

	reply_static(&reply, 200, "text/plain", "one", 3);
	etag_apply(NULL, &reply);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_TRUE(reply.etag[0] == '"');
	snprintf(tag, sizeof(tag), "%s", reply.etag);
	reply_text(&reply, 200, "text/plain", strdup("one"), 3);
	etag_apply(tag, &reply);
	CU_ASSERT_EQUAL(reply.status, 304);
	CU_ASSERT_EQUAL(reply.n, 0);
	CU_ASSERT_STRING_EQUAL(reply.etag, tag);
	reply_static(&reply, 200, "text/plain", "two", 3);
	etag_apply(tag, &reply);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_STRING_NOT_EQUAL(reply.etag, tag);
	reply_problem(&reply, 404, "no");
	etag_apply("*", &reply);
	CU_ASSERT_EQUAL(reply.status, 404);
	CU_ASSERT_STRING_EQUAL(reply.etag, "");
	reply_fini(&reply);
}

static void test_apply_weak(void)
{
	char tag[sizeof(reply.etag)];

	reply_static(&reply, 200, "text/plain", "one", 3);
	etag_apply_weak(json_pack("{s:i}", "a", 1), NULL, &reply);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_EQUAL(strncmp(reply.etag, "W/\"", 3), 0);
	snprintf(tag, sizeof(tag), "%s", reply.etag);
	reply_static(&reply, 200, "text/plain", "another", 7);
	etag_apply_weak(json_pack("{s:i}", "a", 1), tag, &reply);
	CU_ASSERT_EQUAL(reply.status, 304);
	CU_ASSERT_STRING_EQUAL(reply.etag, tag);
	reply_static(&reply, 200, "text/plain", "one", 3);
	etag_apply_weak(json_pack("{s:i}", "a", 2), tag, &reply);
	CU_ASSERT_EQUAL(reply.status, 200);
	etag_apply_weak(NULL, "*", &reply);
	CU_ASSERT_EQUAL(reply.status, 200);
}

CUNIT_MAIN("pages and tags", {"a query", test_take}, {"following next", test_follow},
    {"a list in another order", test_mixed}, {"If-None-Match", test_matches},
    {"tagging", test_apply}, {"tagging what moves", test_apply_weak})
