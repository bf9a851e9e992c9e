/* SPDX-License-Identifier: MIT */
/* Lines of the access log: always one line, whatever clients send; JSON with the same contents as
 * logfmt; the formats that common tools read. */
#include "http/request/access_log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static struct weir_http_request *req;
static struct weir_http_header headers[2];
/* the longest atomic write to a pipe, and as much again to detect overruns */
static char text[2 * 4096 + 1];
static struct access_line line;

static struct weir_slice slice(const char *s)
{
	return (struct weir_slice){s, strlen(s)};
}

static void begin(void)
{
	req = calloc(1, weir_http_request_type.size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(req);
	headers[0] = (struct weir_http_header){slice("User-Agent"), slice("curl \"7\"\\ \xe4")};
	headers[1] = (struct weir_http_header){slice("Referer"), slice("/from")};
	weir_event_init(&req->ev, &weir_http_request_type, 0);
	req->method = WEIR_HTTP_GET;
	req->method_text = slice("GET");
	req->target = slice("/a?b");
	req->host = slice("example.org");
	req->minor = 1;
	req->headers = headers;
	req->n_headers = 2;
	req->res.fd = -1;
	req->res.status = 200;
	req->res.body = slice("hello");
	line = (struct access_line){.req = req,
	    .class_name = "vip",
	    .client = slice("192.0.2.1"),
	    .wall_ns = 1767323045678000000, /* 2026-01-02T03:04:05.678Z */
	    .took_ns = 113999,
	    .bytes = 5,
	    .share = 1};
}

static const char *made(enum access_format format)
{
	size_t n = access_line(format, &line, text);

	CU_ASSERT_FATAL(n < sizeof(text));
	text[n] = '\0';
	return text;
}

static void test_shapes(void)
{
	begin();
	CU_ASSERT_STRING_EQUAL(made(ACCESS_LOGFMT),
	    "ts=2026-01-02T03:04:05.678Z client=192.0.2.1 method=\"GET\" target=\"/a?b\" "
	    "status=200 bytes=5 us=113 class=vip outcome=ok host=\"example.org\" "
	    "agent=\"curl \\\"7\\\"\\\\ \\xe4\"\n");
	CU_ASSERT_STRING_EQUAL(made(ACCESS_COMMON),
	    "192.0.2.1 - - [02/Jan/2026:03:04:05 +0000] \"GET /a?b HTTP/1.1\" 200 5\n");
	CU_ASSERT_STRING_EQUAL(made(ACCESS_COMBINED),
	    "192.0.2.1 - - [02/Jan/2026:03:04:05 +0000] \"GET /a?b HTTP/1.1\" 200 5 \"/from\" "
	    "\"curl \\\"7\\\"\\\\ \\xe4\"\n");
	req->n_headers = 0;
	req->minor = 0;
	line.bytes = 0;
	line.share = 0.01;
	CU_ASSERT_STRING_EQUAL(made(ACCESS_COMBINED),
	    "192.0.2.1 - - [02/Jan/2026:03:04:05 +0000] \"GET /a?b HTTP/1.0\" 200 0 \"-\" \"-\"\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(made(ACCESS_LOGFMT), " agent=\"\" share=0.01\n"));
	free(req);
}

/* The path has its own field when its spelling differs from the target as sent. The longest target
 * and path fit. */
static void test_path(void)
{
	static char target[8000], path[8000];

	begin();
	req->path = slice("/a");
	CU_ASSERT_PTR_NULL(strstr(made(ACCESS_LOGFMT), " path="));
	req->target = slice("/a");
	CU_ASSERT_PTR_NULL(strstr(made(ACCESS_LOGFMT), " path="));
	req->target = slice("/%61?b");
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(made(ACCESS_LOGFMT), " target=\"/%61?b\" path=\"/a\" status="));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(made(ACCESS_JSON), ",\"target\":\"/%61?b\",\"path\":\"/a\",\"status\":"));
	CU_ASSERT_PTR_NOT_NULL(strstr(made(ACCESS_COMMON), "\"GET /%61?b HTTP/1.1\""));
	req->target = slice("/a/b"); /* more than the path */
	CU_ASSERT_PTR_NOT_NULL(strstr(made(ACCESS_LOGFMT), " path=\"/a\""));
	memset(target, '\\', sizeof(target));
	memset(path, '"', sizeof(path));
	req->target = (struct weir_slice){target, sizeof(target)};
	req->path = (struct weir_slice){path, sizeof(path)};
	for (int format = ACCESS_LOGFMT; format <= ACCESS_COMBINED; format++)
		CU_ASSERT(strlen(made((enum access_format)format)) <= ACCESS_LINE_BYTES);
	free(req);
}

static void test_json(void)
{
	begin();
	line.share = 0.25;
	line.outcome = WEIR_EQUEUE;
	json_t *j = json_loads(made(ACCESS_JSON), 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(j, "agent")), "curl \"7\"\\\\ \\xe4");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "client")), "192.0.2.1");
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(j, "outcome")), weir_error_word(WEIR_EQUEUE));
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "status")), 200);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "us")), 113);
	CU_ASSERT_EQUAL(json_real_value(json_object_get(j, "share")), 0.25);
	CU_ASSERT_EQUAL(json_object_size(j), 12);
	json_decref(j);
	free(req);
}

/* Whatever a request contains: one line of valid JSON or balanced quotes, within the length
 * limit. */
static void test_any_bytes(void)
{
	static char bytes[3][1000];
	unsigned seed = 7;

	begin();
	for (int round = 0; round < 2000; round++) {
		for (int k = 0; k < 3; k++)
			for (size_t i = 0; i < sizeof(bytes[k]); i++)
				bytes[k][i] = (char)(round == 0 ? 0xff : rand_r(&seed) >> 7);
		size_t n = (size_t)rand_r(&seed) % 1000;
		req->target = (struct weir_slice){bytes[0], round == 0 ? 1000 : n};
		req->host = (struct weir_slice){bytes[1], 1000};
		req->method_text = headers[0].value = (struct weir_slice){bytes[2], 1000};
		headers[1].value = req->target;
		for (int f = ACCESS_LOGFMT; f <= ACCESS_COMBINED; f++) {
			const char *made_line = made((enum access_format)f);
			CU_ASSERT_PTR_EQUAL(
			    strchr(made_line, '\n'), made_line + strlen(made_line) - 1);
			CU_ASSERT(strlen(made_line) <= 4096);
			size_t printable = 0;
			while (made_line[printable] >= ' ' && made_line[printable] < 0x7f)
				printable++;
			CU_ASSERT_EQUAL(made_line[printable], '\n');
		}
		json_t *j = json_loads(made(ACCESS_JSON), 0, NULL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(j);
		json_decref(j);
	}
	free(req);
}

static void expect_quoted(const char *p, size_t n, size_t most, bool json, const char *expected)
{
	char out[256];
	size_t len = access_quote(out, 0, (struct weir_slice){p, n}, most, json);

	out[len] = '\0';
	CU_ASSERT_STRING_EQUAL(out, expected);
}

static void test_quote(void)
{
	expect_quoted("", 0, 10, false, "\"\"");
	expect_quoted("plain", 5, 10, false, "\"plain\"");
	expect_quoted("a\"b\\c", 5, 10, false, "\"a\\\"b\\\\c\"");
	expect_quoted("a\"b\\c", 5, 10, true, "\"a\\\"b\\\\\\\\c\"");
	expect_quoted("\r\n\0\x1b\x7f\xff", 6, 10, false, "\"\\x0d\\x0a\\x00\\x1b\\x7f\\xff\"");
	expect_quoted("\r\xff", 2, 10, true, "\"\\\\x0d\\\\xff\"");
	expect_quoted("0123456789", 10, 10, false, "\"0123456789\"");
	/* no more than three times as long */
	expect_quoted(
	    "\n\n\n\n\n\n\n\n\n", 9, 10, true, "\"\\\\x0a\\\\x0a\\\\x0a\\\\x0a\\\\x0a...\"");
	expect_quoted(
	    "\n\n\n\n\n\n\n\n\n", 9, 10, false, "\"\\x0a\\x0a\\x0a\\x0a\\x0a\\x0a\\x0a...\"");
	expect_quoted("0123456789a", 11, 10, true, "\"0123456789...\"");
}

CUNIT_MAIN("access log lines", {"shapes", test_shapes}, {"path", test_path}, {"json", test_json},
    {"any bytes", test_any_bytes}, {"quote", test_quote})
