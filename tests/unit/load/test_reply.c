/* SPDX-License-Identifier: MIT */
/* Responses, whole and split at every position. */
#include "load/reply.h"

#include <string.h>

#include "cunit_main.h"

/* Feed text[0..n) in two pieces, cut at `cut`. Sets how many bytes were used. */
static enum reply_verdict feed(
    struct reply *r, const char *text, size_t n, size_t cut, size_t *used)
{
	enum reply_verdict v = REPLY_MORE;
	size_t part = 0;

	*used = 0;
	if (cut > 0)
		v = reply_feed(r, text, cut, used);
	if (v != REPLY_MORE || cut == n)
		return v;
	v = reply_feed(r, text + cut, n - cut, &part);
	*used += part;
	return v;
}

/* `text` begins with one response of `length` bytes, wherever it is split; the rest is not used. */
static void check_whole(const char *text, size_t length, int status, bool no_body, bool degraded)
{
	size_t n = strlen(text);

	for (size_t cut = 0; cut <= n; cut++) {
		struct reply r;
		size_t used;
		reply_init(&r, no_body);
		CU_ASSERT_EQUAL_FATAL(feed(&r, text, n, cut, &used), REPLY_DONE);
		CU_ASSERT_EQUAL(used, length);
		CU_ASSERT_EQUAL(r.status, status);
		CU_ASSERT_EQUAL(r.degraded, degraded);
		CU_ASSERT_TRUE(r.started);
	}
}

/* A second response after `first` is not consumed. */
static void check_followed(const char *first, int status, bool no_body, bool degraded)
{
	char text[1024];

	snprintf(text, sizeof(text), "%sHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", first);
	check_whole(text, strlen(first), status, no_body, degraded);
}

static void test_lengths(void)
{
	check_followed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, false, false);
	check_followed("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503, false, false);
	check_followed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		       "3\r\nabc\r\n0\r\n\r\n",
	    200, false, false);
	check_followed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		       "1\r\na\r\n0\r\nTrailer: x\r\n\r\n",
	    200, false, false);
	check_followed("HTTP/1.1 204 No Content\r\n\r\n", 204, false, false);
	check_followed("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, true, false);
	check_followed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 200, true, false);
}

static void test_not_modified_has_no_body(void)
{
	check_followed("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, false, false);
	check_followed(
	    "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 304, false, false);
}

static void test_interim(void)
{
	check_followed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
		       "HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx",
	    201, false, false);
	check_followed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
	    200, true, false);
	check_followed("HTTP/1.1 103 Early\r\nX-Weir-Degraded: 1\r\n\r\n"
		       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	    200, false, false);
}

static void test_degraded(void)
{
	check_followed("HTTP/1.1 200 OK\r\nX-Weir-Degraded: 0.4\r\nContent-Length: 1\r\n\r\na", 200,
	    false, true);
	check_followed("HTTP/1.1 200 OK\r\nA: b\r\nx-WEIR-degraded:1\r\nContent-Length: 0\r\n\r\n",
	    200, false, true);
	check_followed(
	    "HTTP/1.1 200 OK\r\nX-Quality: 0.40\r\nContent-Length: 0\r\n\r\n", 200, false, true);
	check_followed(
	    "HTTP/1.1 200 OK\r\nx-quality:  .5\r\nContent-Length: 0\r\n\r\n", 200, false, true);
	check_followed("HTTP/1.1 200 OK\r\nX-Quality: 1.00\r\nA: 0.40\r\n"
		       "Content-Length: 0\r\n\r\n",
	    200, false, false);
	check_followed("HTTP/1.1 200 OK\r\nX-Quality:\r\nX-Qualit: 0.40\r\n"
		       "X-Quality-Of: 0.40\r\nX-Qualities: 0\r\nContent-Length: 0\r\n\r\n",
	    200, false, false);
	check_followed("HTTP/1.1 200 OK\r\nX-Weir-Degrade: 1\r\nX-Weir-Degradedx: 1\r\n"
		       "Content-Length: 0\r\n\r\n",
	    200, false, false);
}

static void test_keep_alive(void)
{
	static const struct {
		const char *text;
		bool keep;
	} cases[] = {
	    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
	    {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false},
	    {"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n", false},
	    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
	    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reply r;
		size_t used;
		reply_init(&r, false);
		CU_ASSERT_EQUAL(
		    reply_feed(&r, cases[i].text, strlen(cases[i].text), &used), REPLY_DONE);
		CU_ASSERT_EQUAL(r.keep_alive, cases[i].keep);
	}
}

static void test_until_the_end(void)
{
	const char *text = "HTTP/1.1 200 OK\r\n\r\nsome bytes";
	struct reply r;
	size_t used;

	reply_init(&r, false);
	CU_ASSERT_EQUAL(reply_feed(&r, text, strlen(text), &used), REPLY_MORE);
	CU_ASSERT_EQUAL(reply_end(&r), REPLY_DONE);
	CU_ASSERT_EQUAL(r.status, 200);
	CU_ASSERT_FALSE(r.keep_alive);
}

static void test_cut_short(void)
{
	const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

	for (size_t n = 0; n < strlen(text); n++) {
		struct reply r;
		size_t used;
		reply_init(&r, false);
		if (n > 0)
			CU_ASSERT_EQUAL(reply_feed(&r, text, n, &used), REPLY_MORE);
		CU_ASSERT_EQUAL(reply_end(&r), REPLY_MORE);
		CU_ASSERT_EQUAL(r.started, n > 0);
	}
}

static void test_malformed(void)
{
	static const char *const texts[] = {
	    "220 mail ready\r\n",
	    "<html>",
	    "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 2x0 OK\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
	    "HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct reply r;
		size_t used;
		reply_init(&r, false);
		CU_ASSERT_EQUAL(reply_feed(&r, texts[i], strlen(texts[i]), &used), REPLY_MALFORMED);
	}
}

/* ---- expected responses ---- */

static bool right(const char *expected, const char *response)
{
	uint64_t hash[REPLY_HASH_BYTES / 8];
	struct load_expect e;
	struct weir_err err = {0};
	struct reply r;
	size_t used;
	bool ok = true;

	CU_ASSERT_EQUAL_FATAL(expect_parse(expected, &e, &err), 0);
	for (size_t cut = 1; cut < strlen(response); cut++) { /* in two pieces */
		reply_init(&r, false);
		reply_expect(&r, &e, hash);
		CU_ASSERT_EQUAL(reply_feed(&r, response, cut, &used), REPLY_MORE);
		CU_ASSERT_EQUAL(
		    reply_feed(&r, response + cut, strlen(response) - cut, &used), REPLY_DONE);
		if (cut == 1)
			ok = reply_as_expected(&r);
		CU_ASSERT_EQUAL(reply_as_expected(&r), ok);
	}
	return ok;
}

static void test_expect(void)
{
	static const char plain[] = "HTTP/1.1 200 OK\r\nContent-Type: Text/Plain; charset=x\r\n"
				    "Content-Length: 3\r\n\r\nabc";
	static const char chunked[] = "HTTP/1.1 100 Continue\r\nContent-Type: text/html\r\n\r\n"
				      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
				      "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n";

	CU_ASSERT(right("type=text/plain", plain));
	CU_ASSERT_FALSE(right("type=text/plai", plain));
	CU_ASSERT_FALSE(right("type=text/html", plain));
	CU_ASSERT_FALSE(right("type=text/html", chunked));
	CU_ASSERT(right("hash=44bc2cf5ad770999", plain)); /* xxhsum -H64 of "abc" */
	CU_ASSERT(right("hash=44BC2CF5AD770999", chunked));
	CU_ASSERT_FALSE(right("hash=44bc2cf5ad770998", plain));
	CU_ASSERT_FALSE(right("type=text/html,hash=44bc2cf5ad770999", plain));
}

static void test_expect_text(void)
{
	static const char *const bad[] = {"", "status", "status=", "status=99", "status=600",
	    "status=2000", "status=100", "type=", "type=html", "type=text/", "type=a/b c",
	    "hash=12", "hash=44bc2cf5ad77099g", "status=200,", "status=200,status=200", "body=x",
	    "type=a/b,type=a/c"};
	const struct load_expect none = {0};
	struct weir_err err = {0};
	struct load_expect e;
	char text[120];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(expect_parse(bad[i], &e, &err), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    expect_parse("hash=44BC2CF5AD770999,status=404,type=Text/HTML", &e, &err), 0);
	expect_text(&e, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "status=404,type=text/html,hash=44bc2cf5ad770999");
	expect_text(&none, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
}

CUNIT_MAIN("reply", {"expected", test_expect}, {"expectations", test_expect_text},
    {"lengths, and what follows is left alone", test_lengths},
    {"304 has no body", test_not_modified_has_no_body}, {"interim answers", test_interim},
    {"degraded", test_degraded}, {"keep-alive", test_keep_alive},
    {"a body until the end", test_until_the_end}, {"cut short", test_cut_short},
    {"malformed", test_malformed})
