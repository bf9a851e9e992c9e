/* SPDX-License-Identifier: MIT */
/* http.cache: answers in parts, and clients that try to choose the answers of others. */
#include "fixture/http/cached.h"

#define FRESH "Cache-Control: max-age=1000\r\n"
#define TAG   "ETag: \"v1\"\r\n"
#define LONG  100000 /* more than http.client collects */

/* An answer of `n` bytes, all of them `c`, as one text. The caller frees it. */
static char *long_reply(const char *fields, char c, size_t n)
{
	char *text = malloc(n + 512);
	int head =
	    snprintf(text, 512, "HTTP/1.1 200 X\r\nContent-Length: %zu\r\n%s\r\n", n, fields);

	memset(text + head, c, n);
	text[head + (int)n] = '\0';
	return text;
}

static bool gets_long(int c, char with, size_t n)
{
	struct answer a = {0};
	bool good = answer_read(c, &a) && a.status == 200 && a.n == n;

	for (size_t i = 0; good && i < n; i++)
		good = a.body[i] == with;
	answer_free(&a);
	return good;
}

static void long_answers(void)
{
	struct cached k = cached_new();
	char *reply = long_reply(FRESH TAG, 'x', LONG);

	cached_start(&k);
	client_say(k.c, GET("/a"));
	cached_head(&k);
	client_say(k.u, reply);
	CU_ASSERT(gets_long(k.c, 'x', LONG));
	client_say(k.c, GET("/a"));
	CU_ASSERT(gets_long(k.c, 'x', LONG));
	CU_ASSERT(
	    cached_hit(&k, k.c, cached_get("/a", "Range: bytes=99998-\r\n"), 206, "xx", NULL));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 1);
	free(reply);
	cached_stop(&k);
}

static void chunked_answers(void)
{
	struct cached k = cached_new();
	int c = -1;

	cached_start(&k);
	c = client_open(k.s.port);
	client_say(k.c, GET("/a"));
	cached_head(&k);
	client_say(
	    k.u, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n" FRESH "\r\n5\r\nhello\r\n");
	client_say(c, GET("/a"));
	CACHED_AWAIT(&k, "collapsed_total", 1);
	client_say(k.u, "1\r\n!\r\n0\r\n\r\n");
	CU_ASSERT(chunks_are(k.c, "hello!"));
	CU_ASSERT(client_gets(c, 200, "hello!"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "hello!", "Age: "));
	close(c);
	cached_stop(&k);
}

/* An answer that breaks off is not stored, and the next request fetches it whole. */
static void torn_answers(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	for (int i = 0; i < 2; i++) {
		client_say(k.c, GET("/a"));
		cached_head(&k);
		client_say(k.u, i == 0 ? "HTTP/1.1 200 X\r\nContent-Length: 50000\r\n" FRESH
					 "\r\nhello"
				       : "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n" FRESH
					 "\r\n5\r\nhello\r\n");
		close(k.u);
		k.u = -1;
		char head[4096], body[64];
		CU_ASSERT(head_read(k.c, head, sizeof(head)));
		while (client_recv(k.c, body, sizeof(body), 0) > 0)
			continue;
		close(k.c);
		k.c = client_open(k.s.port);
	}
	CU_ASSERT(
	    cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "whole"), 200, "whole"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "stores_total"), 1);
	cached_stop(&k);
}

/* An answer longer than max_object is passed on; those that wait go on as soon as that is known. */
static void too_long_answers(void)
{
	struct cached k = cached_new();
	char *reply = long_reply(FRESH, 'x', LONG);
	int c = -1, u = -1;

	fixture_set(k.cache, "with.max_object", "50000");
	cached_start(&k);
	c = client_open(k.s.port);
	client_say(k.c, GET("/a"));
	cached_head(&k);
	client_say(c, GET("/a"));
	CACHED_AWAIT(&k, "collapsed_total", 1);
	client_send(k.u, reply, 200); /* the length is in the head */
	u = k.u;
	k.u = -1;
	cached_head(&k);
	client_say(k.u, reply);
	CU_ASSERT(gets_long(c, 'x', LONG));
	client_say(u, reply + 200);
	CU_ASSERT(gets_long(k.c, 'x', LONG));
	/* in chunks, it is known only midway */
	client_say(k.c, GET("/b"));
	cached_head(&k);
	client_say(k.u, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n" FRESH "\r\n186a0\r\n");
	client_say(k.u, strstr(reply, "\r\n\r\n") + 4);
	client_say(k.u, "\r\n0\r\n\r\n");
	CU_ASSERT(chunks_are(k.c, strstr(reply, "\r\n\r\n") + 4));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "stores_total"), 0);
	close(c);
	close(u);
	free(reply);
	cached_stop(&k);
}

/* A long answer to a request in the background. */
static void long_in_the_background(void)
{
	struct cached k = cached_new();
	char *reply = long_reply(FRESH TAG, 'y', LONG);

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(200,
		"Cache-Control: max-age=10, stale-while-revalidate=60\r\nAge: 11\r\n" TAG, "one"),
	    200, "one"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "one", NULL));
	cached_head(&k);
	client_say(k.u, reply);
	CACHED_AWAIT(&k, "stores_total", 2);
	client_say(k.c, GET("/a"));
	CU_ASSERT(gets_long(k.c, 'y', LONG));
	/* and one that breaks off: the object stays */
	cached_stop(&k);
	free(reply);
}

/* An error in parts is replaced by the stale object. */
static void error_in_parts(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(200, "Cache-Control: max-age=10\r\nAge: 11\r\nX-Mine: 1\r\n" TAG, "one"),
	    200, "one"));
	client_say(k.c, GET("/a"));
	cached_head(&k);
	client_say(k.u, "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\nX-Bad: "
			"1\r\n\r\n3\r\nbad\r\n0\r\n\r\n");
	struct answer a = {0};
	CU_ASSERT(answer_read(k.c, &a) && answer_is(&a, 200, "one"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "X-Mine: 1\r\n"));
	CU_ASSERT_PTR_NULL(strstr(a.head, "X-Bad"));
	answer_free(&a);
	cached_stop(&k);
}

/* ---- poisoning ---- */

/* What a client sends to choose the answer of others does not reach the origin, or is in the key. */
static void hostile_fields(void)
{
	static const char *const fields[] = {"X-Forwarded-Host: evil", "X-Host: evil",
	    "X-Original-URL: /evil", "X-Rewrite-URL: /evil", "X-HTTP-Method-Override: DELETE",
	    "X_HTTP_Method_Override: DELETE", "X-Forwarded-Server: evil", "X-Original-Host: evil",
	    "X-Forwarded-Port: 666", "X-Forwarded-Prefix: /evil", "Forwarded: host=evil",
	    "True-Client-IP: 6.6.6.6", "Max-Forwards: 0", "X-Real-IP: 6.6.6.6",
	    "Connection: x-forwarded-proto", "Via: 1.0 x\r\nX-Forwarded-Scheme: evil"};
	struct cached k = cached_new();
	char target[16], field[256];

	cached_start(&k);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		snprintf(target, sizeof(target), "/%zu", i);
		snprintf(field, sizeof(field), "%s\r\n", fields[i]);
		client_say(k.c, cached_get(target, field));
		const char *head = cached_head(&k);
		CU_ASSERT_EQUAL(strncmp(head, "GET /", 5), 0);
		CU_ASSERT_PTR_NULL(strstr(head, "evil"));
		CU_ASSERT_PTR_NULL(strstr(head, "DELETE"));
		CU_ASSERT_PTR_NULL(strstr(head, "6.6.6.6"));
		CU_ASSERT_PTR_NULL(strstr(head, "666"));
		CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-host"), "t");
		client_say(k.u, cached_reply(200, FRESH, "good"));
		CU_ASSERT(client_gets(k.c, 200, "good"));
		CU_ASSERT(cached_hit(&k, k.c, cached_get(target, ""), 200, "good", NULL));
	}
	cached_stop(&k);
}

/* Errors that a client can provoke are for that client alone. A body with a GET is not in the key. */
static void provoked_errors(void)
{
	static const int statuses[] = {400, 403, 405, 413, 414, 431, 501};
	struct cached k = cached_new();
	char target[16];

	cached_start(&k);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		snprintf(target, sizeof(target), "/%zu", i);
		CU_ASSERT(cached_fetch(&k, k.c, cached_get(target, "X-Bad: \x80\r\n"),
		    cached_reply(statuses[i], FRESH, "bad"), statuses[i], "bad"));
		CU_ASSERT(cached_fetch(&k, k.c, cached_get(target, ""),
		    cached_reply(200, FRESH, "good"), 200, "good"));
	}
	CU_ASSERT(
	    cached_fetch(&k, k.c, "GET /fat HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx",
		cached_reply(200, FRESH, "fat"), 200, "fat"));
	CU_ASSERT(
	    cached_fetch(&k, k.c, GET("/fat"), cached_reply(200, FRESH, "good"), 200, "good"));
	cached_stop(&k);
}

/* What a proxy in `trust` says is passed on, so it is in the key. */
static void trusted_fields(void)
{
	struct cached k = cached_new();

	server_list(k.s.web, "trust", (const char *const[]){"127.0.0.1/32"}, 1);
	cached_start(&k);
#define OF(host) "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Host: " host "\r\n"
	CU_ASSERT(cached_fetch(
	    &k, k.c, cached_get("/a", OF("x")), cached_reply(200, FRESH, "x"), 200, "x"));
	CU_ASSERT(cached_fetch(
	    &k, k.c, cached_get("/a", OF("y")), cached_reply(200, FRESH, "y"), 200, "y"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", OF("x")), 200, "x", NULL));
	CU_ASSERT(cached_fetch(&k, k.c,
	    cached_get("/a", "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"),
	    cached_reply(200, FRESH, "s"), 200, "s"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", OF("y")), 200, "y", NULL));
	cached_stop(&k);
}

CUNIT_MAIN("http.cache parts", {"long answers", long_answers}, {"chunked answers", chunked_answers},
    {"torn answers", torn_answers}, {"too long answers", too_long_answers},
    {"long in the background", long_in_the_background}, {"error in parts", error_in_parts},
    {"hostile fields", hostile_fields}, {"provoked errors", provoked_errors},
    {"trusted fields", trusted_fields})
