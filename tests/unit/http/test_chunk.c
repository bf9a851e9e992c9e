/* SPDX-License-Identifier: MIT */
/* The chunked decoder: every rule, with the same result at every split. */
#include "http/message/chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define ROOM 1000

struct result {
	enum chunk_verdict v;
	size_t used, n;
	char body[ROOM + 1];
};

/* Decode text[0..n) in two parts, each in its own allocation. */
static struct result decode(const char *text, size_t n, size_t split, uint64_t room)
{
	struct result r = {.v = CHUNK_MORE};
	struct chunk c;

	chunk_init(&c, room);
	for (int part = 0; part < 2 && r.v == CHUNK_MORE; part++) {
		size_t from = part ? split : 0, len = part ? n - split : split;
		char *exact = malloc(len ? len : 1);
		const char *at = exact;
		struct weir_slice data;
		memcpy(exact, text + from, len);
		do {
			r.v = chunk_next(&c, &at, exact + len, &data);
			if (r.v == CHUNK_DATA) {
				memcpy(r.body + r.n, data.p, data.n);
				r.n += data.n;
			}
		} while (r.v == CHUNK_DATA);
		r.used = from + (size_t)(at - exact);
		free(exact);
	}
	return r;
}

/* The verdict on `text`, equal for every split. When the body is complete it must be `body`. */
static enum chunk_verdict check(const char *text, size_t n, const char *body)
{
	struct result whole = decode(text, n, n, ROOM);

	for (size_t split = 0; split < n; split++) {
		struct result r = decode(text, n, split, ROOM);
		CU_ASSERT_EQUAL(r.v, whole.v);
		CU_ASSERT_EQUAL(r.used, whole.used);
		CU_ASSERT_EQUAL(r.n, whole.n);
		CU_ASSERT_EQUAL(memcmp(r.body, whole.body, r.n), 0);
	}
	if (body && whole.v == CHUNK_END)
		CU_ASSERT(whole.n == strlen(body) && memcmp(whole.body, body, whole.n) == 0);
	return whole.v;
}

#define CHECK(text, body) check(text, sizeof(text) - 1, body)

static void test_good(void)
{
	CU_ASSERT_EQUAL(CHECK("0\r\n\r\n", ""), CHUNK_END);
	CU_ASSERT_EQUAL(CHECK("5\r\nhello\r\n0\r\n\r\n", "hello"), CHUNK_END);
	CU_ASSERT_EQUAL(
	    CHECK("5\r\nhello\r\n00a\r\n, world...\r\n0\r\n\r\n", "hello, world..."), CHUNK_END);
	CU_ASSERT_EQUAL(CHECK("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"), CHUNK_END);
	CU_ASSERT_EQUAL(CHECK("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"), CHUNK_END);
	CU_ASSERT_EQUAL(CHECK("1;a\r\nx\r\n0;b=c;d=\"e\\\"f\"\r\n\r\n", "x"), CHUNK_END);
	CU_ASSERT_EQUAL(CHECK("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n", "x"), CHUNK_END);
	CU_ASSERT_EQUAL(CHECK("0000000000000001\r\nx\r\n0\r\n\r\n", "x"), CHUNK_END);
}

/* Bytes after a body are not consumed. */
static void test_leftover(void)
{
	struct result r = decode("1\r\nx\r\n0\r\n\r\nGET", 14, 14, ROOM);

	CU_ASSERT_EQUAL(r.v, CHUNK_END);
	CU_ASSERT_EQUAL(r.used, 11);
}

static void test_unfinished(void)
{
	static const char text[] = "5;a=\"b\"\r\nhello\r\n0\r\nA: b\r\n\r\n";

	for (size_t n = 0; n < sizeof(text) - 1; n++)
		CU_ASSERT_EQUAL(decode(text, n, n / 2, ROOM).v, CHUNK_MORE);
}

static void test_bad_size(void)
{
	CU_ASSERT_EQUAL(CHECK("\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK(" 5\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("5 \r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("+5\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("-1\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0x5\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("5_0\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("g\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("5\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("5\rx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("00000000000000005\r\n", NULL), CHUNK_BAD); /* 17 digits */
	CU_ASSERT_EQUAL(CHECK("FFFFFFFFFFFFFFFF\r\n", NULL), CHUNK_LARGE);
	CU_ASSERT_EQUAL(CHECK("7FFFFFFFFFFFFFFF\r\n", NULL), CHUNK_LARGE);
	CU_ASSERT_EQUAL(CHECK("3e9\r\n", NULL), CHUNK_LARGE); /* 1001 */
	CU_ASSERT_EQUAL(CHECK("3e8\r\n", NULL), CHUNK_MORE);  /* 1000 */
	CU_ASSERT_EQUAL(CHECK("1\r\nx\r\n3e8\r\n", NULL), CHUNK_LARGE);
}

static void test_bad_framing(void)
{
	CU_ASSERT_EQUAL(CHECK("1\r\nxx\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1\r\nx\n0\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1\r\nx\rx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1\r\nx0\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\n\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\n\rx", NULL), CHUNK_BAD);
}

static void test_bad_extension(void)
{
	static char text[400];

	CU_ASSERT_EQUAL(CHECK("1;\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;;a\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a=\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1; a\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a b\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a=b=c\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a\0b\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a=\"\r\n\"\r\nx", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("1;a=\"b\"c\r\nx", NULL), CHUNK_BAD);
	for (int n = 250; n < 260; n++) { /* ';' and the extension are at most 256 bytes */
		int len = sprintf(text, "1;%0*d\r\nx\r\n0\r\n\r\n", n, 0);
		CU_ASSERT_EQUAL(check(text, (size_t)len, NULL), n <= 255 ? CHUNK_END : CHUNK_BAD);
	}
}

/* Fields that affect framing or routing are refused as trailers; similar names are accepted. */
static void test_forbidden_trailer(void)
{
	static const char *const names[] = {
	    "content-length", "Transfer-Encoding", "HOST", "Trailer", "connection"};
	char text[100];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int len = sprintf(text, "0\r\n%s: 1\r\n\r\n", names[i]);
		CU_ASSERT_EQUAL(check(text, (size_t)len, NULL), CHUNK_BAD);
		len = sprintf(text, "0\r\nX: y\r\n%s:\r\n\r\n", names[i]);
		CU_ASSERT_EQUAL(check(text, (size_t)len, NULL), CHUNK_BAD);
		len = sprintf(text, "0\r\n%sx: 1\r\n\r\n", names[i]);
		CU_ASSERT_EQUAL(check(text, (size_t)len, ""), CHUNK_END);
		len = sprintf(text, "0\r\n%.*s: 1\r\nx%s: 1\r\n\r\n", (int)strlen(names[i]) - 1,
		    names[i], names[i]);
		CU_ASSERT_EQUAL(check(text, (size_t)len, ""), CHUNK_END);
	}
}

static void test_bad_trailer(void)
{
	static char text[CHUNK_TRAILER_MAX + 100];
	int n;

	CU_ASSERT_EQUAL(CHECK("0\r\n b: c\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\nA : b\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\n: b\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\nA\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\nA: b\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\nA: b\rC: d\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\nA: b\r\n c\r\n\r\n", NULL), CHUNK_BAD);
	CU_ASSERT_EQUAL(CHECK("0\r\nA: \x01\r\n\r\n", NULL), CHUNK_BAD);
	n = sprintf(text, "0\r\nA:%0*d\r\n\r\n", CHUNK_TRAILER_MAX - 5, 0);
	CU_ASSERT_EQUAL(decode(text, (size_t)n, 100, ROOM).v, CHUNK_END);
	n = sprintf(text, "0\r\nA:%0*d\r\n\r\n", CHUNK_TRAILER_MAX - 4, 0);
	CU_ASSERT_EQUAL(decode(text, (size_t)n, 100, ROOM).v, CHUNK_BAD);
}

CUNIT_MAIN("chunk", {"good bodies", test_good}, {"leftover", test_leftover},
    {"unfinished", test_unfinished}, {"bad sizes", test_bad_size},
    {"bad framing", test_bad_framing}, {"bad extensions", test_bad_extension},
    {"forbidden trailers", test_forbidden_trailer}, {"bad trailers", test_bad_trailer})
