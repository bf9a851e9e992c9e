/* SPDX-License-Identifier: MIT */
/* Text for people: character lengths, escaping, truncating, collecting. */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static void test_characters(void)
{
	CU_ASSERT_EQUAL(text_char("a"), 1);
	CU_ASSERT_EQUAL(text_char(""), 1);
	CU_ASSERT_EQUAL(text_char("ö"), 2);
	CU_ASSERT_EQUAL(text_char("高"), 3);
	CU_ASSERT_EQUAL(text_char("\xf0\x9f\x98\x80"), 4);
	CU_ASSERT_EQUAL(text_char("\xf4\x8f\xbf\xbf"), 4);
	CU_ASSERT_EQUAL(text_char("\x80"), 0); /* a continuation byte */
	CU_ASSERT_EQUAL(text_char("\xc3"), 0); /* a first byte alone */
	CU_ASSERT_EQUAL(text_char("\xe9\xab"), 0);
	CU_ASSERT_EQUAL(text_char("\xc0\xaf"), 0); /* overlong '/' */
	CU_ASSERT_EQUAL(text_char("\xe0\x80\xaf"), 0);
	CU_ASSERT_EQUAL(text_char("\xf0\x80\x80\xaf"), 0);
	CU_ASSERT_EQUAL(text_char("\xed\xa0\x80"), 0);     /* a surrogate */
	CU_ASSERT_EQUAL(text_char("\xf4\x90\x80\x80"), 0); /* past U+10FFFF */
	CU_ASSERT_EQUAL(text_char("\xff"), 0);
}

static void test_control(void)
{
	CU_ASSERT_TRUE(text_is_control("\x1b") && text_is_control("\x7f"));
	CU_ASSERT_TRUE(text_is_control("\xc2\x9b"));
	CU_ASSERT_FALSE(
	    text_is_control("\xc2\xa0") || text_is_control(" ") || text_is_control("ö"));
}

static const char *escaped(const char *in, size_t size)
{
	static char out[64];

	memset(out, '#', sizeof(out));
	size_t n = text_escape(out, size, in, "\"");
	CU_ASSERT_EQUAL(n, strlen(out));
	return out;
}

static void test_escape(void)
{
	CU_ASSERT_STRING_EQUAL(escaped("", 64), "");
	CU_ASSERT_STRING_EQUAL(escaped("a\"b\n\t\r\x01ö\xff", 64), "a\\\"b\\n\\t\\r\\x01ö\\xff");
	CU_ASSERT_STRING_EQUAL(escaped("\xc2\x85", 64), "\\xc2\\x85");
}

static void test_cut(void)
{
	CU_ASSERT_STRING_EQUAL(escaped("abc", 1), "");
	CU_ASSERT_STRING_EQUAL(escaped("abc", 3), "ab");
	CU_ASSERT_STRING_EQUAL(escaped("abö", 4), "ab");
	CU_ASSERT_STRING_EQUAL(escaped("a\x01", 5), "a");
	CU_ASSERT_STRING_EQUAL(escaped("a\x01", 6), "a\\x01");
}

static void test_collect(void)
{
	char buf[5] = "####";
	struct text_out out = {buf, sizeof(buf), 0};

	text_put(&out, "ab");
	text_put_bytes(&out, "cdef", 3);
	text_put(&out, "");
	text_put(&out, "z");
	CU_ASSERT_EQUAL(text_end(&out), 6);
	CU_ASSERT_STRING_EQUAL(buf, "abcd");
	out = (struct text_out){NULL, 0, 0};
	text_put(&out, "ab");
	CU_ASSERT_EQUAL(text_end(&out), 2);
}

static int64_t number_in(const char *value)
{
	CU_ASSERT_EQUAL(setenv("WEIR_TEST_NUMBER", value, 1), 0);
	return text_env_number("WEIR_TEST_NUMBER");
}

static void test_env_number(void)
{
	unsetenv("WEIR_TEST_NUMBER");
	CU_ASSERT_EQUAL(text_env_number("WEIR_TEST_NUMBER"), -1);
	CU_ASSERT_EQUAL(number_in("0"), 0);
	CU_ASSERT_EQUAL(number_in("9223372036854775807"), INT64_MAX);
	CU_ASSERT_EQUAL(number_in("9223372036854775808"), -1);
	CU_ASSERT_EQUAL(number_in(""), -1);
	CU_ASSERT_EQUAL(number_in("-1"), -1);
	CU_ASSERT_EQUAL(number_in("+1"), -1);
	CU_ASSERT_EQUAL(number_in(" 1"), -1);
	CU_ASSERT_EQUAL(number_in("1 "), -1);
	CU_ASSERT_EQUAL(number_in("1k"), -1);
}

CUNIT_MAIN("text", {"characters", test_characters}, {"control", test_control},
    {"escape", test_escape}, {"cut", test_cut}, {"collect", test_collect},
    {"environment", test_env_number})
