/* SPDX-License-Identifier: MIT */
/*
 * The byte guard on request lines, targets and hosts: texts that it refuses, and similar ones that
 * are good.
 */
#include "guard_judge.h"

static void test_request_line(void)
{
	static const struct verdict t[] = {
	    {"\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 200}, /* one empty line */
	    {"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 400},
	    {" GET / HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /\r\n" HOST "\r\n", 400}, /* HTTP/0.9 */
	    {"GET / \r\n\r\n", 400},
	    {"GET\r\n\r\n", 400},
	    {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /  HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400},
	    {"GET\t/ HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET / http/1.1\r\n" HOST "\r\n", 400},
	    {"GET / HTTP/1,1\r\n" HOST "\r\n", 400},
	    {"GET / HTTP/11\r\n" HOST "\r\n", 400},
	    {"GET / HTTP/1.10\r\n" HOST "\r\n", 400},
	    {"GET / HTTP/a.1\r\n" HOST "\r\n", 400},
	    {"GET / HTTP/1.2\r\n" HOST "\r\n", 505},
	    {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
	    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
	    {"GET / HTTP/0.9\r\n" HOST "\r\n", 505},
	    {"GET / HTTP/1.0\r\n\r\n", 200},
	    {"G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"PROPFIND / HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"NONSENSE / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"get / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" HOST "\r\n", 501},
	};

	JUDGE_ALL(t);
}

static void test_target(void)
{
	static const struct verdict t[] = {
	    {"GET /a/b%20c?d=%e4&e|f HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET /a|[b]?c[]={\\}^`?d HTTP/1.1\r\n" HOST "\r\n", 200}, /* as browsers send it */
	    {"GET /{a} HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /a\\b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /a?\"b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /a?b#c HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET a HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET ?a HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET * HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"OPTIONS ** HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 400},
	    {"CONNECT / HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET a:80 HTTP/1.1\r\n" HOST "\r\n", 400}, /* authority-form */
	    {"GET /a#b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /% HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /%4 HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /%4g HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /%00 HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /%01 HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 400},
	};

	JUDGE_ALL(t);
}

static void test_absolute(void)
{
	static const struct verdict t[] = {
	    {"GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	    {"GET HTTP://A/b HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	    {"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	    {"GET http://a?q HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET http://a? HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET http://?q HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET http://a/?q=50% HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET http://a/50%?q HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /?50% HTTP/1.1\r\n" HOST "\r\n", 200}, /* a form field typed that way */
	    {"GET /?%4 HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET /?%zz%&%% HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET /?%%00 HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /.. HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /a/../../b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /%2e%2E/b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET //../b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET http://a/../b HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"GET /a/../b HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET /?/../.. HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"GET http://a/b HTTP/1.0\r\n\r\n", 200},
	    {"GET http://a/b HTTP/1.1\r\n\r\n", 400}, /* no Host */
	    {"GET http://a/b HTTP/1.1\r\nHost: b\r\n\r\n", 400},
	    {"GET http://a:80/b HTTP/1.1\r\nHost: a\r\n\r\n", 200},
	    {"GET http://a/b HTTP/1.1\r\nHost: a:80\r\n\r\n", 200},
	    {"GET http://a:/b HTTP/1.1\r\nHost: A:80\r\n\r\n", 200},
	    {"GET http://[::1]:80/b HTTP/1.1\r\nHost: [::1]\r\n\r\n", 200},
	    {"GET http://a:443/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	    {"GET http://a:0/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	    {"GET http://a:8/b HTTP/1.1\r\nHost: a:80\r\n\r\n", 400},
	    {"GET http://u@a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	    {"GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	    {"GET http:/a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	    {"GET https://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	    {"GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	};

	JUDGE_ALL(t);
}

/* Every visible byte, in a path and in a query. */
static void test_target_bytes(void)
{
	char path[] = "GET /aXb HTTP/1.1\r\n" HOST "\r\n",
	     query[] = "GET /?Xb HTTP/1.1\r\n" HOST "\r\n";

	for (char c = 0x21; c < 0x7f; c++) {
		bool in_path = !strchr("\"#%<>\\^`{}", c), in_query = !strchr("\"#<>", c);
		path[6] = query[6] = c;
		CU_ASSERT_EQUAL(judge(path), in_path ? 200 : 400);
		CU_ASSERT_EQUAL(judge(query), in_query ? 200 : 400);
	}
}

static void test_host(void)
{
	static const struct verdict t[] = {
	    {"GET / HTTP/1.1\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
	    {"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a.example-1.org:8080\r\n\r\n", 200},
	    {"GET / HTTP/1.1\r\nHost: a:\r\n\r\n", 200},
	    {"GET / HTTP/1.1\r\nHost: a.b.\r\n\r\n", 200},
	    {"GET / HTTP/1.1\r\nHost: a..b\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: .a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a:8a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200},
	    {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: [a]\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: []\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: [1111:2222:3333:4444:5555:6666:255.255.255.255]\r\n\r\n",
		200},
	    {"GET / HTTP/1.1\r\nHost: [1111:2222:3333:4444:5555:6666:255.255.255.2555]\r\n\r\n",
		400},
	    {"GET / HTTP/1.1\r\nHost: [1111:2222:3333:4444:5555:6666:7777:8888:9999]\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", 400},
	};

	JUDGE_ALL(t);
}

static int judge_secure(const char *text, bool secure)
{
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_head head = {.headers = headers, .secure = secure};

	return parse_head(text, strlen(text), &head) == GUARD_GOOD ? 200 : head.status;
}

/* Over TLS the scheme must be https, and without TLS it must be http: any other is for another
 * server. */
static void test_secure(void)
{
	CU_ASSERT_EQUAL(judge_secure("GET https://a/b HTTP/1.1\r\n" HOST "\r\n", true), 200);
	CU_ASSERT_EQUAL(judge_secure("GET https://a/b HTTP/1.1\r\n" HOST "\r\n", false), 400);
	CU_ASSERT_EQUAL(judge_secure("GET http://a/b HTTP/1.1\r\n" HOST "\r\n", true), 400);
	CU_ASSERT_EQUAL(judge_secure("GET https:///b HTTP/1.1\r\n" HOST "\r\n", true), 400);
	CU_ASSERT_EQUAL(judge_secure("GET /b HTTP/1.1\r\n" HOST "\r\n", true), 200);
	CU_ASSERT_EQUAL(judge_secure("GET https://a:443/b HTTP/1.1\r\n" HOST "\r\n", true), 200);
	CU_ASSERT_EQUAL(judge_secure("GET https://a:80/b HTTP/1.1\r\n" HOST "\r\n", true), 400);
}

/* Methods that llhttp does not know but a server accepts: for their framing llhttp is given
 * POST. */
static int judge_with(const char *text, struct weir_strings *methods)
{
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_head head = {.headers = headers, .methods = methods};

	if (parse_head(text, strlen(text), &head) != GUARD_GOOD)
		return head.status;
	CU_ASSERT(head.method.n >= 3 && memcmp(head.method.p, "BRE", 3) != 0);
	return head.keep_alive ? 200 : 201;
}

static void test_methods(void)
{
	char query[] = "QUERY", other[] = "X-y", source[] = "SOURCE";
	char *list[] = {query, other, source};
	struct weir_strings methods = {3, list}, none = {0, NULL};
	static const struct verdict t[] = {
	    {"QUERY / HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"\r\nQUERY / HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"X-y / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 201},
	    {"SOURCE / HTTP/1.1\r\n" HOST "\r\n", 200},
	    {"QUERY / HTTP/1.0\r\n\r\n", 201},
	    {"QUERY / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200},
	    {"QUERY / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200},
	    {"QUERY / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 400},
	    {"QUERY * HTTP/1.1\r\n" HOST "\r\n", 400},
	    {"QUERY / HTTP/1.1\r\n\r\n", 400},
	    {"QUER / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"QUERYX / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"query / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"BREW / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"TRACE / HTTP/1.1\r\n" HOST "\r\n", 501},
	    {"GET / HTTP/1.1\r\n" HOST "\r\n", 200},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int status = judge_with(t[i].text, &methods);
		if (status != t[i].status)
			fprintf(stderr, "got %d, expected %d: \"%s\"\n", status, t[i].status,
			    t[i].text);
		CU_ASSERT_EQUAL(status, t[i].status);
	}
	CU_ASSERT_EQUAL(judge_with(t[0].text, &none), 501);
	CU_ASSERT_EQUAL(judge_with(t[0].text, NULL), 501);
}

static void test_method_names(void)
{
	static const char *const good[] = {
	    "QUERY", "query", "BREW", "DESCRIBE", "SOURCE", "a", "M!#$%&'*+-.^_`|~9", "GETT", "GE"};
	static const char *const bad[] = {"", "GET", "POST", "PROPFIND", "TRACE", "CONNECT", "A B",
	    "A(", "A\t", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "\xc3\xa4"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT(parse_method_good(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(parse_method_good(bad[i]));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_FALSE(parse_method_served(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(parse_method_served(bad[i]), strcmp(bad[i], "GET") == 0 ||
								 strcmp(bad[i], "POST") == 0 ||
								 strcmp(bad[i], "PROPFIND") == 0);
}

CUNIT_MAIN("guard: targets", {"request line", test_request_line}, {"target", test_target},
    {"absolute target", test_absolute}, {"bytes of a target", test_target_bytes},
    {"Host", test_host}, {"over TLS", test_secure}, {"methods", test_methods},
    {"names of methods", test_method_names})
