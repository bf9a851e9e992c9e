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

CUNIT_MAIN("reply", {"lengths, and what follows is left alone", test_lengths},
    {"304 has no body", test_not_modified_has_no_body}, {"interim answers", test_interim},
    {"degraded", test_degraded}, {"keep-alive", test_keep_alive},
    {"a body until the end", test_until_the_end}, {"cut short", test_cut_short},
    {"malformed", test_malformed})
