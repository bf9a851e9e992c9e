/* SPDX-License-Identifier: MIT */
/* The filter between texts from servers and a terminal: what is escaped, and that formats otherwise
 * work as in printf. */
#include "cli/client/plain.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static char got[4096];

static FILE *begin(void)
{
	memset(got, 0, sizeof(got));
	FILE *f = fmemopen(got, sizeof(got), "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	return f;
}

static void is(FILE *f, const char *want)
{
	fclose(f);
	CU_ASSERT_STRING_EQUAL(got, want);
	if (strcmp(got, want) != 0)
		fprintf(stderr, "'%s' instead of '%s'\n", got, want);
}

#define PRINTS(want, ...)                                                                          \
	do {                                                                                       \
		FILE *f_ = begin();                                                                \
		plain_print(f_, __VA_ARGS__);                                                      \
		is(f_, want);                                                                      \
	} while (0)

static void test_formats(void)
{
	PRINTS("a 7 -7 7 0x07 %\n", "a %d %i %u 0x%02x %%\n", 7, -7, 7u, 7u);
	PRINTS("9000000000 18446744073709551615 12 -3", "%lld %llu %zu %ld", 9000000000LL,
	    18446744073709551615ULL, (size_t)12, -3L);
	PRINTS("1.500 1.5 2e+10 +0003", "%.3f %.4g %.0e %+05d", 1.5, 1.5, 2e10, 3);
	PRINTS("[ab   ][   ab][ab]", "[%-5s][%5s][%.2s]", "ab", "ab", "abc");
	PRINTS("[  ab][ab ]", "[%*s][%-*.*s]", 4, "ab", 3, 2, "abc");
	PRINTS("x", "%c", 'x');
	PRINTS("[\xc3\xa4  ]", "[%-3s]", "\xc3\xa4"); /* width in characters */
	PRINTS("[\xc3\xa4]", "[%.3s]", "\xc3\xa4\xc3\xb6");
	PRINTS("", "%s", "");
}

static void test_escapes(void)
{
	PRINTS("\n\\n\\t\\r\n", "\n%s\n", "\n\t\r");
	PRINTS("\\x1b[31m\\x07\\x08\\x7f", "%s", "\x1b[31m\a\b\x7f");
	PRINTS("\\u009b31m \\u0085", "%s",
	    "\xc2\x9b"
	    "31m \xc2\x85");
	PRINTS("\\x9b\\xff\\xc3", "%s", "\x9b\xff\xc3");
	PRINTS("\\u202e\\u2066\\u200f\\u061c\\u2028", "%s",
	    "\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8");
	PRINTS("\xe2\x82\xac \xf0\x9f\x98\x80 \\n", "%s", "\xe2\x82\xac \xf0\x9f\x98\x80 \\n");
	/* overlong, a surrogate, beyond the last character, truncated */
	PRINTS("\\xc0\\x9b\\xe0\\x82\\x9b", "%s", "\xc0\x9b\xe0\x82\x9b");
	PRINTS(
	    "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xf8", "%s", "\xed\xa0\x80\xf4\x90\x80\x80\xf8");
	PRINTS("\\xe2\\x80", "%s", "\xe2\x80");
	PRINTS("\\x1b", "%c", '\x1b');
	PRINTS("[\\x1b ]", "[%-5s]", "\x1b");
}

/* Any bytes become plain text, in all three functions. */
static void test_any(void)
{
	char text[9], one[128];

	srand(1);
	for (int i = 0; i < 200000; i++) {
		for (size_t k = 0; k < 8; k++)
			text[k] = (char)(rand() % 3 ? 0x80 + rand() % 128 : 1 + rand() % 127);
		text[8] = '\0';
		plain_text(one, sizeof(one), text);
		char two[128];
		/* Plain text is not changed. */
		CU_ASSERT_STRING_EQUAL(plain_text(two, sizeof(two), one), one);
		for (const char *p = one; *p; p++)
			if ((unsigned char)*p < 0x20 || *p == 0x7f)
				CU_FAIL_FATAL("a control character");
	}
	char small[6];
	CU_ASSERT_STRING_EQUAL(plain_text(small, sizeof(small), "a\x1b\x1b"), "a\\x1b");
	CU_ASSERT_STRING_EQUAL(plain_text(small, 1, "abc"), "");
}

static void test_lines(void)
{
	FILE *f = begin();

	plain_lines(f, "a\n\tb\x1b\r\n");
	is(f, "a\n\tb\\x1b\\r\n");
}

static void test_json(void)
{
	static const char text[] =
	    "{\"a\":\r\n\t\"\x7f\xc2\x9b\xff\xe2\x80\xae\xc3\xa4\\u001b\"}\0";
	FILE *f = begin();

	plain_json(f, text, sizeof(text) - 1);
	is(f, "{\"a\": \n\t\"\\u007f\\u009b\\ufffd\\u202e\xc3\xa4\\u001b\"}\\u0000");
}

CUNIT_MAIN("plain", {"formats", test_formats}, {"escapes", test_escapes}, {"any bytes", test_any},
    {"lines", test_lines}, {"JSON", test_json})
