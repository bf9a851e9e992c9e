/* SPDX-License-Identifier: MIT */
/*
 * The strict check of a request. Each bad request is also fed byte by byte: the verdict must be the
 * same in the end, and never "whole" on the way.
 */
#include "admin/request/head.h"

#include <string.h>

#include "cunit_main.h"

static struct authority address;

static enum head_verdict check(const char *p, size_t n, struct head_problem *problem)
{
	return head_check(&address, p, n, problem);
}

static void setup(void)
{
	struct weir_err err;

	CU_ASSERT_EQUAL_FATAL(authority_parse("127.0.0.1:9900", &address, &err), 0);
}

#define HOST "Host: 127.0.0.1:9900\r\n"
#define GET  "GET / HTTP/1.1\r\n"

static void is_whole(const char *text)
{
	struct head_problem problem;
	size_t n = strlen(text);

	CU_ASSERT_EQUAL(check(text, n, &problem), HEAD_WHOLE);
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(check(text, i, &problem), HEAD_MORE);
}

static void is_bad(const char *text, int status)
{
	struct head_problem problem = {0};
	size_t n = strlen(text);

	CU_ASSERT_EQUAL(check(text, n, &problem), HEAD_BAD);
	CU_ASSERT_EQUAL(problem.status, status);
	CU_ASSERT_TRUE(problem.why && *problem.why);
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_NOT_EQUAL(check(text, i, &problem), HEAD_WHOLE);
}

static void test_whole(void)
{
	setup();
	is_whole(GET HOST "\r\n");
	is_whole("HEAD /metrics HTTP/1.0\r\n" HOST "\r\n");
	is_whole(
	    "GET /api/v1/decisions?n=5 HTTP/1.1\r\nAccept: */*\r\nhost:localhost:9900\r\n\r\n");
	is_whole("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n12345");
	is_whole("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
	is_whole("DELETE /x HTTP/1.1\r\n" HOST "X-Note: a=b\r\nX-Note: c=d\r\n\r\n");
}

/* Bytes may follow the announced body: the connection ends with the response. */
static void test_more_behind(void)
{
	static const char text[] = "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n1GET /";
	struct head_problem problem;

	setup();
	CU_ASSERT_EQUAL(check(text, strlen(text), &problem), HEAD_WHOLE);
}

static void test_framing(void)
{
	setup();
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
	       "0\r\n\r\n",
	    400);
	is_bad(
	    "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n12345", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n12345", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n12345", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n12345", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\n12345", 400);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 8193\r\n\r\n", 413);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 999999999999999999\r\n\r\n", 413);
	is_bad("PUT /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n12345",
	    417);
}

static void test_bytes(void)
{
	setup();
	is_bad("GET / HTTP/1.1\n" HOST "\r\n", 400);
	is_bad(GET "Host: 127.0.0.1:9900\n\n", 400);
	is_bad(GET HOST "X: a\rb\r\n\r\n", 400);
	is_bad(GET HOST "X: a\x01\r\n\r\n", 400);
	is_bad(GET HOST " folded: a\r\n\r\n", 400);
	is_bad(GET HOST "X : a\r\n\r\n", 400);
	is_bad(GET HOST ": a\r\n\r\n", 400);
	is_bad(GET HOST "nothing\r\n\r\n", 400);
	struct head_problem problem;
	static const char nul[] = GET HOST "X: a\0b\r\n\r\n";
	CU_ASSERT_EQUAL(check(nul, sizeof(nul) - 1, &problem), HEAD_BAD);
}

static void test_line(void)
{
	setup();
	is_bad("GET /\r\n" HOST "\r\n", 400);
	is_bad("GET  / HTTP/1.1\r\n" HOST "\r\n", 400);
	is_bad("GET / HTTP/1.1 \r\n" HOST "\r\n", 400);
	is_bad("GET http://127.0.0.1:9900/ HTTP/1.1\r\n" HOST "\r\n", 400);
	is_bad("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 400);
	is_bad("CONNECT 127.0.0.1:9900 HTTP/1.1\r\n" HOST "\r\n", 400);
	is_bad("get / HTTP/1.1\r\n" HOST "\r\n", 400);
	is_bad("GET / HTTP/2.0\r\n" HOST "\r\n", 505);
	is_bad("GET / HTTP/1.2\r\n" HOST "\r\n", 505);
}

static void test_hosts(void)
{
	setup();
	is_bad(GET "\r\n", 400);
	is_bad("GET / HTTP/1.0\r\n\r\n", 400);
	is_bad(GET HOST "Cookie: a=b\r\nCookie: c=d\r\n\r\n", 400);
	is_bad(GET HOST "Authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n", 400);
	is_bad(GET HOST HOST "\r\n", 400);
	is_bad(GET HOST "Host: evil.example\r\n\r\n", 400);
	is_bad(GET "Host: evil.example\r\n\r\n", 421);
	is_bad(GET "Host: 127.0.0.1\r\n\r\n", 421);
	is_bad(GET "Host:\r\n\r\n", 400);
}

/* Fields that decide whether a change is allowed must not be repeated. */
static void test_repeated(void)
{
	setup();
	is_bad(
	    GET HOST "Origin: http://127.0.0.1:9900\r\norigin: http://evil.example\r\n\r\n", 400);
	is_bad(GET HOST "Content-Type: text/plain\r\nContent-Type: application/json\r\n\r\n", 400);
	is_bad(GET HOST "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n\r\n", 400);
}

static size_t long_head(char *buf, size_t size, size_t length)
{
	size_t n = (size_t)snprintf(buf, size, GET HOST "X: ");

	memset(buf + n, 'x', length - n - 4);
	memcpy(buf + length - 4, "\r\n\r\n", 4);
	return length;
}

static void test_length(void)
{
	static char buf[20000];
	struct head_problem problem;

	setup();
	long_head(buf, sizeof(buf), HEAD_MAX);
	CU_ASSERT_EQUAL(check(buf, HEAD_MAX, &problem), HEAD_WHOLE);
	CU_ASSERT_EQUAL(check(buf, HEAD_MAX - 1, &problem), HEAD_MORE);
	long_head(buf, sizeof(buf), HEAD_MAX + 1);
	CU_ASSERT_EQUAL(check(buf, HEAD_MAX + 1, &problem), HEAD_BAD);
	CU_ASSERT_EQUAL(problem.status, 431);
	CU_ASSERT_EQUAL(check(buf, HEAD_MAX, &problem), HEAD_BAD);
	CU_ASSERT_EQUAL(problem.status, 431);
	CU_ASSERT_STRING_EQUAL(problem.why, "the head is too long");
	memset(buf, 'x', sizeof(buf));
	memcpy(buf, "GET /", 5); /* the request line alone is too long */
	CU_ASSERT_EQUAL(check(buf, sizeof(buf), &problem), HEAD_BAD);
	CU_ASSERT_EQUAL(problem.status, 414);
	CU_ASSERT_STRING_EQUAL(problem.why, "the head is too long");
	size_t n = (size_t)snprintf(buf, sizeof(buf),
	    "PUT / HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", ADMIN_BODY_MAX);
	memset(buf + n, '1', ADMIN_BODY_MAX);
	CU_ASSERT_EQUAL(check(buf, n + ADMIN_BODY_MAX - 1, &problem), HEAD_MORE);
	CU_ASSERT_EQUAL(check(buf, n + ADMIN_BODY_MAX, &problem), HEAD_WHOLE);
}

CUNIT_MAIN("head", {"whole requests", test_whole}, {"bytes behind", test_more_behind},
    {"framing", test_framing}, {"bytes", test_bytes}, {"request line", test_line},
    {"Host", test_hosts}, {"repeated fields", test_repeated}, {"length", test_length})
