/* SPDX-License-Identifier: MIT */
/* The guard on heads of answers: what it accepts, what it refuses, and that splits do not matter. */
#include <stdio.h>
#include <string.h>

#include "cunit_main.h"
#include "http/message/parse.h"

static struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];

static enum guard_verdict judge(const char *text, size_t n, struct http_head *head)
{
	*head = (struct http_head){.headers = headers};
	return parse_answer(text, n, head);
}

static const struct {
	const char *text;
	int code;       /* 0: refused */
	int64_t length; /* -1: none */
	bool chunked, keep;
} heads[] = {
    {"HTTP/1.1 200 OK\r\n\r\n", 200, -1, false, true},
    {"HTTP/1.1 200 \r\n\r\n", 200, -1, false, true},
    {"HTTP/1.1 200\r\n\r\n", 200, -1, false, true},
    {"HTTP/1.1 200 a b \xe9\tc\r\n\r\n", 200, -1, false, true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", 200, 5, false, false},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n", 200, 5, false,
	false},
    {"HTTP/1.1 599 X\r\nContent-Length:  0 \r\nConnection: close\r\n\r\n", 599, 0, false, false},
    {"HTTP/1.1 100 Continue\r\n\r\n", 100, -1, false, true},
    {"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204, 0, false, true},
    {"HTTP/1.1 304 X\r\nContent-Length: 7\r\n\r\n", 304, 7, false, true},
    {"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n", 200, -1, true, true},
    {"HTTP/1.1 200 OK\r\nHost: a b\r\nHost: c\r\nExpect: x\r\nContent-Type: a\r\nContent-Type: "
     "b\r\n\r\n",
	200, -1, false, true},
    {"HTTP/1.1 200 OK\r\nConnection: keep-alive, x\r\n\r\n", 200, -1, false, true},
    {.text = "HTTP/1.1 200 OK\n\n"},
    {.text = "HTTP/1.1 200 OK\r\rX: a\r\n\r\n"},
    {.text = "HTTP/1.1 200 O\x01K\r\n\r\n"},
    {.text = "http/1.1 200 OK\r\n\r\n"},
    {.text = "HTTP/1.2 200 OK\r\n\r\n"},
    {.text = "HTTP/2.0 200 OK\r\n\r\n"},
    {.text = "HTTP/1.1  200 OK\r\n\r\n"},
    {.text = "HTTP/1.1\t200 OK\r\n\r\n"},
    {.text = "HTTP/1.1 20 OK\r\n\r\n"},
    {.text = "HTTP/1.1 2000 OK\r\n\r\n"},
    {.text = "HTTP/1.1 099 OK\r\n\r\n"},
    {.text = "HTTP/1.1 600 OK\r\n\r\n"},
    {.text = "HTTP/1.1 200OK\r\n\r\n"},
    {.text = "HTTP/1.1 2\xb2\x30 OK\r\n\r\n"},
    {.text = "\r\nHTTP/1.1 200 OK\r\n\r\n"},
    {.text = "GET / HTTP/1.1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\n X: a\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nX : a\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nX\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\n: a\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 01\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: \tchunked\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n"},
    {.text = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {.text = "HTTP/1.1 204 X\r\nContent-Length: 1\r\n\r\n"},
    {.text = "HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {.text = "HTTP/1.1 100 X\r\nContent-Length: 1\r\n\r\n"},
    {.text = "HTTP/1.1 200 OK\r\nConnection: close x\r\n\r\n"},
};

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct http_head head;
		enum guard_verdict v = judge(heads[i].text, strlen(heads[i].text), &head);
		bool good = v == (heads[i].code ? GUARD_GOOD : GUARD_REFUSED);
		if (good && v == GUARD_GOOD)
			good = head.code == heads[i].code && head.chunked == heads[i].chunked &&
			       head.has_length == (heads[i].length >= 0) &&
			       (!head.has_length ||
				   head.content_length == (uint64_t)heads[i].length) &&
			       head.keep_alive == heads[i].keep && head.n == strlen(heads[i].text);
		CU_ASSERT(good);
		if (!good)
			printf("case %zu: verdict %d, code %d, why %s\n", i, v, head.code,
			    head.why ? head.why : "-");
	}
}

/* With fewer bytes the verdict is the same, or not known yet. */
static void test_splits(void)
{
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t n = strlen(heads[i].text);
		struct http_head head;
		enum guard_verdict whole = judge(heads[i].text, n, &head);
		for (size_t k = 0; k < n; k++) {
			enum guard_verdict v = judge(heads[i].text, k, &head);
			CU_ASSERT(v == GUARD_MORE || (v == GUARD_REFUSED && v == whole));
		}
	}
}

static void test_limits(void)
{
	static char text[WEIR_HTTP_HEAD_MAX + 100];
	struct http_head head;
	int n = sprintf(text, "HTTP/1.1 200 OK\r\n");

	for (int i = 0; i < WEIR_HTTP_HEADERS_MAX; i++)
		n += sprintf(text + n, "X%d: a\r\n", i);
	sprintf(text + n, "\r\n");
	CU_ASSERT_EQUAL(judge(text, (size_t)n + 2, &head), GUARD_GOOD);
	sprintf(text + n, "Y: a\r\n\r\n");
	CU_ASSERT_EQUAL(judge(text, (size_t)n + 8, &head), GUARD_REFUSED);
	n = sprintf(text, "HTTP/1.1 200 OK\r\nX: ");
	memset(text + n, 'x', sizeof(text) - (size_t)n);
	CU_ASSERT_EQUAL(judge(text, WEIR_HTTP_HEAD_MAX, &head), GUARD_REFUSED);
	CU_ASSERT_EQUAL(judge(text, WEIR_HTTP_HEAD_MAX - 2, &head), GUARD_MORE);
}

CUNIT_MAIN(
    "guard on answers", {"table", test_table}, {"splits", test_splits}, {"limits", test_limits})
