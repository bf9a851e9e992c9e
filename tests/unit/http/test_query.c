/* SPDX-License-Identifier: MIT */
/* Percent-decoding and query parameters: every escape, every size of the buffer, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>

#include "cunit_main.h"

#define SLICE(text) ((struct weir_slice){text, strlen(text)})

static char buf[64];

static int64_t decode(const char *text, bool plus)
{
	memset(buf, 'x', sizeof(buf));
	return weir_http_percent_decode(SLICE(text), plus, buf, sizeof(buf));
}

static int64_t get(const char *query, const char *name)
{
	memset(buf, 'x', sizeof(buf));
	return weir_http_query_get(SLICE(query), name, buf, sizeof(buf));
}

/* A result of length strlen(want). */
static void is(int64_t n, const char *want)
{
	CU_ASSERT_EQUAL(n, (int64_t)strlen(want));
	CU_ASSERT_STRING_EQUAL(buf, want);
}

static void test_plain(void)
{
	is(decode("", false), "");
	is(decode("caf\xc3\xa9/+", false), "caf\xc3\xa9/+");
	is(decode("a+b%2bc", true), "a b+c");
	is(decode("%41%2f%2F%7e%25", false), "A//~%");
	is(decode("%2541", false), "%41"); /* once */
}

static void test_every_byte(void)
{
	for (int c = 0; c < 256; c++) {
		char text[8];
		for (int upper = 0; upper < 2; upper++) {
			snprintf(text, sizeof(text), upper ? "<%%%02X>" : "<%%%02x>", (unsigned)c);
			int64_t n = decode(text, true);
			CU_ASSERT_EQUAL(n, c == 0 ? WEIR_EINVAL : 3);
			CU_ASSERT_EQUAL((unsigned char)buf[1], c == 0 ? 'x' : c);
		}
	}
}

static void test_wrong(void)
{
	static const char *const wrong[] = {"%", "%4", "a%", "%4g", "%g4", "% 4", "%%41", "%+1",
	    "%00", "a%00b", "%4\x80", "%-1", "%0x"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_EQUAL(decode(wrong[i], true), WEIR_EINVAL);
		CU_ASSERT_STRING_EQUAL(buf, "");
	}
	CU_ASSERT_EQUAL(
	    weir_http_percent_decode((struct weir_slice){"a\0b", 3}, false, buf, 9), WEIR_EINVAL);
}

/* Each size, with the input and the output in allocations of exactly that size. */
static void test_sizes(void)
{
	static const char text[] = "a%62c+%65";

	for (size_t size = 0; size < 8; size++) {
		char *in = malloc(sizeof(text) - 1), *out = malloc(size ? size : 1);
		memcpy(in, text, sizeof(text) - 1);
		int64_t n = weir_http_percent_decode(
		    (struct weir_slice){in, sizeof(text) - 1}, true, out, size);
		CU_ASSERT_EQUAL(n, size < 6 ? WEIR_EINVAL : 5);
		if (size > 0)
			CU_ASSERT_STRING_EQUAL(out, size < 6 ? "" : "abc e");
		free(in);
		free(out);
	}
}

static void test_in_place(void)
{
	strcpy(buf, "%61%62%63");
	is(weir_http_percent_decode(SLICE(buf), false, buf, sizeof(buf)), "abc");
}

static void test_parameters(void)
{
	struct weir_slice rest = SLICE("&a=1&&b&c=&=d&e=f=g&"), name, value;
	static const char *const want[][2] = {
	    {"a", "1"}, {"b", NULL}, {"c", ""}, {"", "d"}, {"e", "f=g"}};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		CU_ASSERT_FATAL(weir_http_query_next(&rest, &name, &value));
		CU_ASSERT(name.n == strlen(want[i][0]) && memcmp(name.p, want[i][0], name.n) == 0);
		CU_ASSERT_EQUAL(!value.p, !want[i][1]);
		if (want[i][1])
			CU_ASSERT(value.n == strlen(want[i][1]) &&
				  memcmp(value.p, want[i][1], value.n) == 0);
	}
	CU_ASSERT_FALSE(weir_http_query_next(&rest, &name, &value));
	rest = (struct weir_slice){NULL, 0};
	CU_ASSERT_FALSE(weir_http_query_next(&rest, &name, &value));
}

static void test_get(void)
{
	static const char query[] =
	    "q=a+b%21&n=7&empty=&flag&n=8&%6eame=x&b%zz=1&bad=%zz&a&=nameless";

	is(get(query, "q"), "a b!");
	is(get(query, "n"), "7"); /* the first */
	is(get(query, "empty"), "");
	is(get(query, "flag"), "");
	is(get(query, "name"), "x");
	is(get(query, ""), "nameless");
	CU_ASSERT_EQUAL(get(query, "nothing"), WEIR_ENOENT);
	CU_ASSERT_STRING_EQUAL(buf, "");
	CU_ASSERT_EQUAL(get(query, "Q"), WEIR_ENOENT);
	CU_ASSERT_EQUAL(get(query, "fla"), WEIR_ENOENT);
	CU_ASSERT_EQUAL(get(query, "flags"), WEIR_ENOENT);
	CU_ASSERT_EQUAL(get(query, "b%zz"), WEIR_ENOENT);
	CU_ASSERT_EQUAL(get(query, "bad"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(get("", "q"), WEIR_ENOENT);
	CU_ASSERT_EQUAL(weir_http_query_get(SLICE(query), "q", NULL, 0), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_http_query_get(SLICE(query), "no", NULL, 0), WEIR_ENOENT);
}

CUNIT_MAIN("query", {"plain", test_plain}, {"every byte", test_every_byte}, {"wrong", test_wrong},
    {"sizes", test_sizes}, {"in place", test_in_place}, {"parameters", test_parameters},
    {"get", test_get})
