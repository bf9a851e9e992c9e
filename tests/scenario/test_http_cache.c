/* SPDX-License-Identifier: MIT */
/* http.cache: what is answered from memory, and what the origin is asked for. */
#include "fixture/http/cached.h"

#define FRESH "Cache-Control: max-age=1000\r\n"
#define TAG   "ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

static void hits(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a?x=1"),
	    cached_reply(200, FRESH TAG "Content-Type: text/x\r\n", "hello"), 200, "hello"));
	CU_ASSERT(
	    cached_hit(&k, k.c, GET("/a?x=1"), 200, "hello", "Cache-Status: weir; hit; ttl="));
	CU_ASSERT(cached_hit(&k, k.c, GET("/./%61?x=1"), 200, "hello", "Age: 0\r\n"));
	CU_ASSERT(
	    cached_hit(&k, k.c, "GET /a?x=1 HTTP/1.1\r\nHost: T:80\r\n\r\n", 200, "hello", NULL));
	CU_ASSERT(cached_hit(
	    &k, k.c, "HEAD /a?x=1 HTTP/1.1\r\nHost: t\r\n\r\n", 200, "hello", "text/x\r\n"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a?x=1", "If-None-Match: \"v1\"\r\n"), 304, "",
	    "ETag: \"v1\"\r\n"));
	CU_ASSERT(cached_hit(&k, k.c,
	    cached_get("/a?x=1", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"), 304, "",
	    NULL));
	/* If-None-Match comes first (RFC 9110, 13.2.2) */
	CU_ASSERT(cached_hit(&k, k.c,
	    cached_get("/a?x=1", "If-None-Match: \"v2\"\r\n"
				 "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
	    200, "hello", NULL));
	CU_ASSERT(
	    cached_hit(&k, k.c, cached_get("/a?x=1", "If-Match: \"v2\"\r\n"), 412, NULL, NULL));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "hits_total"), 8);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "stores_total"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "objects"), 1);
	CU_ASSERT(CACHED_METRIC(&k, "bytes") > 100);
	cached_stop(&k);
}

static void ranges(void)
{
	struct cached k = cached_new();
	struct answer a = {0};

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(200, FRESH TAG "Content-Type: text/x\r\n", "0123456789"), 200,
	    "0123456789"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "Range: bytes=2-4\r\n"), 206, "234",
	    "Content-Range: bytes 2-4/10\r\n"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "Range: bytes=-2\r\n"), 206, "89", NULL));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "Range: bytes=10-\r\n"), 416, NULL,
	    "Content-Range: bytes */10\r\n"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "Range: bytes=2-4\r\nIf-Range: \"v1\"\r\n"),
	    206, "234", NULL));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "Range: bytes=2-4\r\nIf-Range: \"v2\"\r\n"),
	    200, "0123456789", NULL));
	CU_ASSERT_FATAL(client_say(k.c, cached_get("/a", "Range: bytes=0-1,8-\r\n")));
	CU_ASSERT(answer_read(k.c, &a) && a.status == 206);
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "multipart/byteranges"));
	CU_ASSERT_PTR_NOT_NULL(memmem(a.body, a.n, "bytes 8-9/10\r\n", 14));
	CU_ASSERT_PTR_NOT_NULL(memmem(a.body, a.n, "\r\n\r\n89\r\n", 8));
	answer_free(&a);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 1);
	cached_stop(&k);
}

/* A first request with conditions fetches the whole, and gets what it asked for. */
static void conditions_first(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	client_say(k.c, cached_get("/a", "If-None-Match: \"v1\"\r\nRange: bytes=0-\r\n"));
	const char *head = cached_head(&k);
	CU_ASSERT_PTR_NULL(field_in(head, "if-none-match"));
	CU_ASSERT_PTR_NULL(field_in(head, "range"));
	client_say(k.u, cached_reply(200, FRESH TAG, "hello"));
	CU_ASSERT(client_gets(k.c, 304, ""));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "hello", NULL));
	/* a part from the middle is the origin's to send, and is not stored */
	client_say(k.c, cached_get("/b", "Range: bytes=1-2\r\n"));
	CU_ASSERT_STRING_EQUAL(field_in(cached_head(&k), "range"), "bytes=1-2");
	client_say(k.u, cached_reply(206, FRESH TAG "Content-Range: bytes 1-2/5\r\n", "el"));
	CU_ASSERT(client_gets(k.c, 206, "el"));
	CU_ASSERT(
	    cached_fetch(&k, k.c, GET("/b"), cached_reply(200, FRESH, "hello"), 200, "hello"));
	/* neither is the answer to HEAD, and the origin need not send the whole for it */
	client_say(k.c, "HEAD /c HTTP/1.1\r\nHost: t\r\n\r\n");
	CU_ASSERT_EQUAL(strncmp(cached_head(&k), "HEAD /c", 7), 0);
	client_say(k.u, cached_reply(200, FRESH, ""));
	CU_ASSERT(client_gets(k.c, 200, ""));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "objects"), 2);
	cached_stop(&k);
}

static void not_stored(void)
{
	static const char *const fields[] = {"Cache-Control: no-store\r\n",
	    "Cache-Control: private, max-age=9\r\n", FRESH "Set-Cookie: a=b\r\n",
	    FRESH "Vary: *\r\n", "", "Cache-Control: max-age=0\r\n"};
	struct cached k = cached_new();
	char target[16];

	cached_start(&k);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		snprintf(target, sizeof(target), "/%zu", i);
		CU_ASSERT(cached_fetch(
		    &k, k.c, cached_get(target, ""), cached_reply(200, fields[i], "a"), 200, "a"));
		CU_ASSERT(cached_fetch(
		    &k, k.c, cached_get(target, ""), cached_reply(200, fields[i], "b"), 200, "b"));
	}
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "stores_total"), 0);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "misses_total"), 6);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "bypass_total"), 6); /* known as not to be stored */
	cached_stop(&k);
}

/* One client's Set-Cookie is not for others, even where the answer may be stored. */
static void cookies(void)
{
	struct cached k = cached_new();
	struct answer a = {0};

	cached_start(&k);
	client_say(k.c, GET("/a"));
	cached_head(&k);
	client_say(k.u,
	    cached_reply(200, "Cache-Control: public, max-age=9\r\nSet-Cookie: id=1\r\n", "x"));
	CU_ASSERT(answer_read(k.c, &a) && answer_is(&a, 200, "x"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "Set-Cookie: id=1"));
	client_say(k.c, GET("/a"));
	CU_ASSERT(answer_read(k.c, &a) && answer_is(&a, 200, "x"));
	CU_ASSERT_PTR_NULL(strstr(a.head, "Set-Cookie"));
	answer_free(&a);
	cached_stop(&k);
}

static void keys(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "1"), 200, "1"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a?"), cached_reply(200, FRESH, "2"), 200, "2"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a?b"), cached_reply(200, FRESH, "3"), 200, "3"));
	CU_ASSERT(cached_fetch(&k, k.c, "GET /a HTTP/1.1\r\nHost: u\r\n\r\n",
	    cached_reply(200, FRESH, "4"), 200, "4"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/A"), cached_reply(200, FRESH, "5"), 200, "5"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "1", NULL));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a?"), 200, "2", NULL));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a?b"), 200, "3", NULL));
	CU_ASSERT(cached_hit(&k, k.c, GET("/A"), 200, "5", NULL));
	cached_stop(&k);
}

static void variants(void)
{
	struct cached k = cached_new();
	const char *vary = FRESH "Vary: Accept-Encoding, x-lang\r\n";

	fixture_set(k.cache, "with.variants", "2");
	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, cached_get("/a", "Accept-Encoding: gzip, br\r\n"),
	    cached_reply(200, vary, "gz"), 200, "gz"));
	CU_ASSERT(
	    cached_hit(&k, k.c, cached_get("/a", "accept-encoding: BR,gzip\r\n"), 200, "gz", NULL));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, vary, "id"), 200, "id"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "id", NULL));
	CU_ASSERT(cached_hit(
	    &k, k.c, cached_get("/a", "Accept-Encoding: gzip, br\r\n"), 200, "gz", NULL));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "objects"), 3); /* with the list of fields */
	/* the oldest gives way */
	CU_ASSERT(cached_fetch(
	    &k, k.c, cached_get("/a", "X-Lang: de\r\n"), cached_reply(200, vary, "de"), 200, "de"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "objects"), 3);
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "id", NULL));
	CU_ASSERT(cached_fetch(&k, k.c, cached_get("/a", "Accept-Encoding: gzip, br\r\n"),
	    cached_reply(200, vary, "gz2"), 200, "gz2"));
	cached_stop(&k);
}

static void requests_control(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_hit(
	    &k, k.c, cached_get("/a", "Cache-Control: only-if-cached\r\n"), 504, NULL, NULL));
	CU_ASSERT(cached_fetch(&k, k.c, cached_get("/a", "Cache-Control: no-store\r\n"),
	    cached_reply(200, FRESH, "0"), 200, "0"));
	CU_ASSERT(cached_fetch(
	    &k, k.c, GET("/a"), cached_reply(200, FRESH TAG "Age: 100\r\n", "1"), 200, "1"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "Cache-Control: only-if-cached\r\n"), 200,
	    "1", "Age: 100\r\n"));
	CU_ASSERT(cached_hit(&k, k.c,
	    cached_get("/a", "Cache-Control: max-age=200, min-fresh=800\r\n"), 200, "1", NULL));
	static const char *const asks[] = {"Cache-Control: max-age=99\r\n",
	    "Cache-Control: min-fresh=950\r\n", "Cache-Control: no-cache\r\n",
	    "Pragma: no-cache\r\n"};
	for (size_t i = 0; i < 4; i++) {
		client_say(k.c, cached_get("/a", asks[i]));
		CU_ASSERT_STRING_EQUAL(field_in(cached_head(&k), "if-none-match"), "\"v1\"");
		client_say(k.u, "HTTP/1.1 304 Not Modified\r\n" FRESH TAG "Age: 100\r\n\r\n");
		CU_ASSERT(client_gets(k.c, 200, "1"));
	}
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "revalidated_total"), 4);
	/* an Authorization that the answer does not allow for */
	CU_ASSERT(cached_fetch(&k, k.c, cached_get("/a", "Authorization: Basic eDp5\r\n"),
	    cached_reply(200, FRESH, "mine"), 200, "mine"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "1", NULL));
	cached_stop(&k);
}

static void requests_do_not_control(void)
{
	struct cached k = cached_new();

	fixture_set(k.cache, "with.client_control", "false");
	fixture_set(k.cache, "with.cache_status", "false");
	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH TAG, "1"), 200, "1"));
	CU_ASSERT(
	    cached_hit(&k, k.c, cached_get("/a", "Cache-Control: no-cache\r\n"), 200, "1", NULL));
	cached_stop(&k);
}

static void changes_invalidate(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	static const char *const targets[] = {"/a", "/b", "/c"};
	for (int i = 0; i < 3; i++)
		CU_ASSERT(cached_fetch(
		    &k, k.c, cached_get(targets[i], ""), cached_reply(200, FRESH, "1"), 200, "1"));
	CU_ASSERT(cached_fetch(&k, k.c, "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n",
	    cached_reply(500, "", "no"), 500, "no"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/a"), 200, "1", NULL));
	CU_ASSERT(cached_fetch(&k, k.c, "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n",
	    cached_reply(
		201, "Location: http://T/x/../b\r\nContent-Location: http://other/c\r\n", "y"),
	    201, "y"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "2"), 200, "2"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/b"), cached_reply(200, FRESH, "2"), 200, "2"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/c"), 200, "1", NULL)); /* of another host */
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "invalidated_total"), 2);
	cached_stop(&k);
}

static int64_t purge(struct cached *k, const char *what)
{
	char why[200] = "";

	return weir_graph_purge(k->s.graph, what, why, sizeof(why));
}

static void purges(void)
{
	struct cached k = cached_new();
	static const char *const targets[] = {"/a", "/a/b", "/c", "/d"};
	static const char *const fields[] = {FRESH "Surrogate-Key: x one\r\n",
	    FRESH "Cache-Tag: y,one\r\n", FRESH "Vary: x-lang\r\n", FRESH};

	cached_start(&k);
	for (int i = 0; i < 4; i++)
		CU_ASSERT(cached_fetch(&k, k.c, cached_get(targets[i], ""),
		    cached_reply(200, fields[i], "1"), 200, "1"));
	CU_ASSERT_EQUAL(purge(&k, "/a"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(purge(&k, ""), WEIR_EINVAL);
	CU_ASSERT_EQUAL(purge(&k, "http://t/none"), 0);
	CU_ASSERT_EQUAL(purge(&k, "http://T:80/x/../d"), 1);
	CU_ASSERT_EQUAL(purge(&k, "http://t/c"), 2); /* the list of fields, and the variant */
	CU_ASSERT_EQUAL(purge(&k, "tag:on"), 0);
	CU_ASSERT_EQUAL(purge(&k, "tag:x"), 1);
	CU_ASSERT(cached_hit(&k, k.c, GET("/a/b"), 200, "1", NULL));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "2"), 200, "2"));
	CU_ASSERT_EQUAL(purge(&k, "http://t/a*"), 2);
	CU_ASSERT_EQUAL(
	    CACHED_METRIC(&k, "objects"), 2); /* the gauge follows with the next answer */
	/* what is under way is not stored */
	client_say(k.c, GET("/e"));
	cached_head(&k);
	CU_ASSERT_EQUAL(purge(&k, "http://t/e"), 0);
	client_say(k.u, cached_reply(200, FRESH, "old"));
	CU_ASSERT(client_gets(k.c, 200, "old"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/e"), cached_reply(200, FRESH, "new"), 200, "new"));
	CU_ASSERT_EQUAL(purge(&k, "*"), 1);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/e"), cached_reply(200, FRESH, "last"), 200, "last"));
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "objects"), 1);
	CU_ASSERT_EQUAL(CACHED_METRIC(&k, "invalidated_total"), 7);
	cached_stop(&k);
}

/* The age is counted from Date of the origin, and Expires is compared with it. */
static void dates(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"),
	    cached_reply(
		200, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=60\r\n", "1"),
	    200, "1"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "2"), 200, "2"));
	CU_ASSERT(cached_fetch(&k, k.c, GET("/b"),
	    cached_reply(200,
		"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nExpires: Sun, 06 Nov 2094 08:49:37 GMT\r\n",
		"3"),
	    200, "3"));
	CU_ASSERT(cached_hit(&k, k.c, GET("/b"), 200, "3", "Age: 1"));
	cached_stop(&k);
}

/* A field of the configuration in the key. */
static void key_fields(void)
{
	struct cached k = cached_new();

	fixture_set(k.cache, "with.key_fields", "x");
	server_list(k.cache, "key_fields", (const char *const[]){"X-Tenant"}, 1);
	cached_start(&k);
	CU_ASSERT(cached_fetch(
	    &k, k.c, cached_get("/a", "X-Tenant: 1\r\n"), cached_reply(200, FRESH, "1"), 200, "1"));
	CU_ASSERT(cached_fetch(
	    &k, k.c, cached_get("/a", "X-Tenant: 2\r\n"), cached_reply(200, FRESH, "2"), 200, "2"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "x-tenant: 1\r\n"), 200, "1", NULL));
	CU_ASSERT_EQUAL(purge(&k, "http://t/a"), 2);
	cached_stop(&k);
}

/* A 304 whose fields forbid the answer to others ends what is stored; so does one with a Vary that is not in
 * the key. */
static void renewal_may_end_it(void)
{
	static const char *const fields[] = {"Cache-Control: private, max-age=1000\r\n",
	    "Cache-Control: no-store\r\n", FRESH "Vary: Cookie\r\n"};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct cached k = cached_new();
		char reply[300];
		cached_start(&k);
		CU_ASSERT(
		    cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH TAG, "1"), 200, "1"));
		client_say(k.c, cached_get("/a", "Cache-Control: no-cache\r\n"));
		CU_ASSERT_STRING_EQUAL(field_in(cached_head(&k), "if-none-match"), "\"v1\"");
		snprintf(
		    reply, sizeof(reply), "HTTP/1.1 304 Not Modified\r\n" TAG "%s\r\n", fields[i]);
		client_say(k.u, reply);
		CU_ASSERT(client_gets(k.c, 200, "1"));
		CU_ASSERT(
		    cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "2"), 200, "2"));
		cached_stop(&k);
	}
}

/* Connection cannot take a field of the key from the request that fills the cache. */
static void connection_takes_nothing(void)
{
	struct cached k = cached_new();

	cached_start(&k);
	client_say(k.c, cached_get("/a", "X-Lang: de\r\nConnection: X-Lang\r\n"));
	CU_ASSERT_STRING_EQUAL(field_in(cached_head(&k), "x-lang"), "de");
	client_say(k.u, cached_reply(200, FRESH "Vary: X-Lang\r\n", "de"));
	CU_ASSERT(client_gets(k.c, 200, "de"));
	CU_ASSERT(cached_hit(&k, k.c, cached_get("/a", "X-Lang: de\r\n"), 200, "de", NULL));
	cached_stop(&k);
}

CUNIT_MAIN("http.cache", {"hits", hits}, {"ranges", ranges}, {"conditions first", conditions_first},
    {"not stored", not_stored}, {"cookies", cookies}, {"keys", keys}, {"variants", variants},
    {"requests control", requests_control}, {"requests do not control", requests_do_not_control},
    {"changes invalidate", changes_invalidate}, {"dates", dates}, {"purges", purges},
    {"key_fields", key_fields}, {"a renewal may end it", renewal_may_end_it},
    {"Connection takes nothing", connection_takes_nothing})
