/* SPDX-License-Identifier: MIT */
/* http.cache: equal requests wait for one, stale answers, and origins that fail. */
#include "fixture/http/cached.h"

#define FRESH "Cache-Control: max-age=1000\r\n"
#define TAG   "ETag: \"v1\"\r\n"
/* stored, and no longer fresh */
#define OLD  "Cache-Control: max-age=10\r\nAge: 11\r\n" TAG
#define MANY 8

static void open_all(struct cached *k, int c[MANY])
{
	for (int i = 0; i < MANY; i++)
		c[i] = client_open(k->s.port);
}

static void close_all(int c[MANY])
{
	for (int i = 0; i < MANY; i++)
		close(c[i]);
}

/* All but c[0] ask for the same, and wait for the first request. */
static void others_wait(struct cached *k, const int c[MANY], const char *ask)
{
	for (int i = 1; i < MANY; i++)
		client_say(c[i], ask);
	CACHED_AWAIT(k, "collapsed_total", MANY - 1);
}

static void equal_misses_are_one(void)
{
	struct cached k = cached_new();
	int c[MANY];

	cached_start(&k);
	open_all(&k, c);
	client_say(c[0], GET("/a"));
	cached_head(&k);
	others_wait(&k, c, GET("/a"));
	client_say(k.u, cached_reply(200, FRESH, "one"));
	for (int i = 0; i < MANY; i++)
		CU_ASSERT(client_gets(c[i], 200, "one"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "hits_total"), MANY - 1);
	close_all(c);
	cached_stop(&k);
}

/* What is not stored is not waited for: all go on at once, and the next ones do not wait. */
static void not_stored_is_not_waited_for(void)
{
	struct cached k = cached_new();
	int c[MANY], u[MANY];
	char head[4096];

	cached_start(&k);
	open_all(&k, c);
	client_say(c[0], GET("/a"));
	cached_head(&k);
	others_wait(&k, c, GET("/a"));
	client_say(k.u, cached_reply(200, "Cache-Control: no-store\r\n", "mine"));
	CU_ASSERT(client_gets(c[0], 200, "mine"));
	/* at the same time: none is answered before all have arrived */
	u[0] = k.u;
	for (int i = 1; i + 1 < MANY; i++)
		u[i] = origin_accept(&k.o);
	for (int i = 0; i + 1 < MANY; i++)
		CU_ASSERT(head_read(u[i], head, sizeof(head)));
	for (int i = 0; i + 1 < MANY; i++)
		client_say(u[i], cached_reply(200, "Cache-Control: no-store\r\n", "mine"));
	for (int i = 1; i < MANY; i++)
		CU_ASSERT(client_gets(c[i], 200, "mine"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "bypass_total"), MANY - 1);
	for (int i = 1; i + 1 < MANY; i++)
		close(u[i]);
	close_all(c);
	cached_stop(&k);
}

/* The client that led goes: another one leads. */
static void leader_goes(void)
{
	struct cached k = cached_new();
	int c[MANY];

	cached_start(&k);
	open_all(&k, c);
	client_say(c[0], GET("/a"));
	cached_head(&k);
	others_wait(&k, c, GET("/a"));
	close(c[0]);
	cached_head(&k);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 2);
	client_say(k.u, cached_reply(200, FRESH, "one"));
	for (int i = 1; i < MANY; i++)
		CU_ASSERT(client_gets(c[i], 200, "one"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 2);
	c[0] = client_open(k.s.port);
	close_all(c);
	cached_stop(&k);
}

/* The origin fails: another one leads, and after some failures all ask at once. */
static void leader_fails(void)
{
	struct cached k = cached_new();
	int c[MANY], u[MANY];
	char head[4096];

	cached_start(&k);
	open_all(&k, c);
	client_say(c[0], GET("/a"));
	cached_head(&k);
	others_wait(&k, c, GET("/a"));
	for (int i = 0; i < 3; i++) {
		client_say(k.u, cached_reply(500, "", "no"));
		if (i < 2)
			cached_head(&k);
	}
	u[0] = k.u;
	for (int i = 1; i < MANY - 3; i++)
		u[i] = origin_accept(&k.o);
	for (int i = 0; i < MANY - 3; i++) {
		CU_ASSERT(head_read(u[i], head, sizeof(head)));
		client_say(u[i], cached_reply(200, FRESH, "one"));
	}
	int good = 0, bad = 0;
	for (int i = 0; i < MANY; i++) {
		struct answer a = {0};
		CU_ASSERT(answer_read(c[i], &a));
		good += a.status == 200;
		bad += a.status == 500;
		answer_free(&a);
	}
	CU_ASSERT_EQUAL(good, MANY - 3);
	CU_ASSERT_EQUAL(bad, 3);
	for (int i = 1; i < MANY - 3; i++)
		close(u[i]);
	close_all(c);
	cached_stop(&k);
}

/* A request that has waited for long enough goes to the origin itself. */
static void wait_is_limited(void)
{
	struct cached k = cached_new();
	int c = -1;

	fixture_set(k.cache, "with.wait", "20ms");
	cached_start(&k);
	c = client_open(k.s.port);
	client_say(k.c, GET("/a"));
	cached_head(&k);
	client_say(c, GET("/a"));
	int u = k.u;
	k.u = -1;
	cached_head(&k);
	client_say(k.u, cached_reply(200, FRESH, "two"));
	CU_ASSERT(client_gets(c, 200, "two"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "collapsed_gone_total"), 1);
	client_say(u, cached_reply(200, FRESH, "one"));
	CU_ASSERT(client_gets(k.c, 200, "one"));
	close(c);
	close(u);
	cached_stop(&k);
}

/* ---- stale answers ---- */

static void revalidation(void)
{
	struct cached k = cached_new();
	int c[MANY];

	cached_start(&k);
	open_all(&k, c);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(200, OLD "X-Kept: 1\r\nX-New: 1\r\nContent-Type: text/x\r\n", "one"), 200,
	    "one"));
	client_say(c[0], GET("/a"));
	CU_ASSERT_STRING_EQUAL(field_in(cached_head(&k), "if-none-match"), "\"v1\"");
	others_wait(&k, c, cached_get("/a", "If-None-Match: \"v1\"\r\n"));
	client_say(
	    k.u, "HTTP/1.1 304 X\r\n" FRESH TAG "X-New: 2\r\nContent-Type: text/wrong\r\n\r\n");
	struct answer a = {0};
	CU_ASSERT(answer_read(c[0], &a) && answer_is(&a, 200, "one"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "X-Kept: 1\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "X-New: 2\r\n"));
	CU_ASSERT_PTR_NULL(strstr(a.head, "X-New: 1\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "Content-Type: text/x\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "weir; hit; fwd=stale; fwd-status=304"));
	answer_free(&a);
	for (int i = 1; i < MANY; i++)
		CU_ASSERT(client_gets(c[i], 304, ""));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "one", "Age: 0\r\n"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "revalidations_total"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "objects"), 1);
	close_all(c);
	cached_stop(&k);
}

/* An answer that is checked each time is checked for each request, and none waits for another. */
static void checked_each_time(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(200, "Cache-Control: no-cache\r\n" TAG, "one"), 200, "one"));
	for (int i = 0; i < 2; i++)
		CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
		    "HTTP/1.1 304 X\r\nCache-Control: no-cache\r\n" TAG "\r\n", 200, "one"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(200, "Cache-Control: no-cache\r\nETag: \"v2\"\r\n", "two"), 200, "two"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "collapsed_total"), 0);
	cached_stop(&k);
}

static void while_revalidating(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, cached_get("/a?q=1", "X-Mine: 7\r\nRange: bytes=0-\r\n"),
	    cached_reply(200,
		"Cache-Control: max-age=10, stale-while-revalidate=60\r\nAge: 11\r\n" TAG, "one"),
	    206, "one"));
	for (int i = 0; i < 3; i++)
		CU_ASSERT(cached_hit(&k, k.c, GET("/a?q=1"), 200, "one", "ttl=-1"));
	const char *head = cached_head(&k);
	CU_ASSERT_EQUAL(strncmp(head, "GET /a?q=1 HTTP/1.1\r\n", 21), 0);
	CU_ASSERT_STRING_EQUAL(field_in(head, "if-none-match"), "\"v1\"");
	CU_ASSERT_STRING_EQUAL(field_in(head, "host"), "t");
	client_say(k.u, cached_reply(200, FRESH TAG, "two"));
	CACHED_AWAIT(&k, "stores_total", 2);
	CU_ASSERT(cached_hit(&k, k.c, GET("/a?q=1"), 200, "two", "Age: 0\r\n"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "background_total"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "stale_total"), 3);
	cached_stop(&k);
}

/* The origin answers with an error, then is gone: what is stored is served, also to those that wait. */
static void origin_fails(void)
{
	struct cached k = cached_new();
	int c[MANY];

	cached_start(&k);
	open_all(&k, c);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, OLD, "one"), 200, "one"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/b"),
	    cached_reply(
		200, "Cache-Control: max-age=10, must-revalidate\r\nAge: 11\r\n" TAG, "two"),
	    200, "two"));
	client_say(c[0], GET("/a"));
	cached_head(&k);
	others_wait(&k, c, GET("/a"));
	client_say(k.u, cached_reply(503, "", "no"));
	for (int i = 0; i < MANY; i++)
		CU_ASSERT(client_gets(c[i], 200, "one"));
	/* and for a while the origin is not asked */
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "one", "Cache-Status"));
	close(k.u);
	k.u = -1;
	origin_shut(&k.o);
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "one", NULL));
	CU_ASSERT(cached_hit(&k, k.c, GET("/b"), 502, NULL, NULL)); /* must be checked */
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "stale_total"), MANY + 2);
	close_all(c);
	cached_stop(&k);
}

/* The stage of the origin refuses what it is offered: a stale answer is better than 503. */
static void origin_is_refused(void)
{
	struct cached k = cached_new();

	fixture_set(k.s.app, "admission.policy", "rate");
	fixture_set(k.s.app, "admission.rate", "0.001");
	fixture_set(k.s.app, "admission.burst", "1");
	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, OLD, "one"), 200, "one"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "one", "detail=refused"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/b"), 503, NULL, NULL));
	cached_stop(&k);
}

/* ---- end ---- */

/* A drain answers those that wait. */
static void drain(void)
{
	struct cached k = cached_new();
	int c[MANY];

	cached_start(&k);
	open_all(&k, c);
	client_say(c[0], GET("/a"));
	cached_head(&k);
	others_wait(&k, c, GET("/a"));
	close_all(c);
	cached_stop(&k);
}

CUNIT_MAIN("http.cache waits", {"equal misses are one", equal_misses_are_one},
    {"not stored is not waited for", not_stored_is_not_waited_for}, {"leader goes", leader_goes},
    {"leader fails", leader_fails}, {"wait is limited", wait_is_limited},
    {"revalidation", revalidation}, {"checked each time", checked_each_time},
    {"while revalidating", while_revalidating}, {"origin fails", origin_fails},
    {"origin is refused", origin_is_refused}, {"drain", drain})
