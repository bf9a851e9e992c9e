/* SPDX-License-Identifier: MIT */
/* Start-up errors: the exact layout of operating.md, odd positions, odd bytes, many errors. */
#include <weir/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static struct weir_errs errs;

static const char *formatted(void)
{
	static char buf[65536];

	size_t n = weir_errs_format(&errs, buf, sizeof(buf));
	CU_ASSERT_EQUAL(n, strlen(buf));
	errs = (struct weir_errs){0};
	return buf;
}

static struct weir_mark mark_at(const char *line, int number, int col, int len)
{
	return (struct weir_mark){
	    .file = "shop.yaml", .excerpt = line, .line = number, .col = col, .len = len};
}

static void test_layout(void)
{
	struct weir_mark a = mark_at("    treads: 4", 5, 5, 6);
	struct weir_mark b = mark_at("      root: /srv", 7, 7, 4);

	int rc = weir_errs_add(&errs, &a, WEIR_EINVAL, "did you mean 'threads'?",
	    "unknown key '%s' in stage '%s'", "treads", "parse");
	CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
	weir_errs_add(&errs, &b, WEIR_EINVAL, "'file.read' takes it inside 'with:'",
	    "'root' is not a key of a stage");
	CU_ASSERT_STRING_EQUAL(formatted(),
	    "shop.yaml:5:5: unknown key 'treads' in stage 'parse'\n"
	    "    5 |     treads: 4\n"
	    "      |     ^^^^^^ did you mean 'threads'?\n"
	    "shop.yaml:7:7: 'root' is not a key of a stage\n"
	    "    7 |       root: /srv\n"
	    "      |       ^^^^ 'file.read' takes it inside 'with:'\n");
}

static void test_no_place(void)
{
	struct weir_mark file = {.file = "x.yaml"};

	weir_errs_add(&errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	weir_errs_add(&errs, NULL, WEIR_EINVAL, "add 'stages:'", "there are no stages");
	weir_errs_add(&errs, &file, WEIR_ENOENT, NULL, "cannot be read");
	CU_ASSERT_STRING_EQUAL(formatted(), "out of memory\n"
					    "there are no stages: add 'stages:'\n"
					    "x.yaml: cannot be read\n");
}

/* Columns count bytes, the underline counts characters; tabs are kept in the padding. */
static void test_characters(void)
{
	struct weir_mark utf8 = mark_at("höhe → x: 1", 12345, 11, 1);
	struct weir_mark wide = mark_at("ä: öö", 1, 5, 4);
	struct weir_mark tab = mark_at("\tx: y", 1, 2, 1);

	weir_errs_add(&errs, &utf8, WEIR_EINVAL, NULL, "a");
	weir_errs_add(&errs, &wide, WEIR_EINVAL, NULL, "b");
	weir_errs_add(&errs, &tab, WEIR_EINVAL, NULL, "c");
	CU_ASSERT_STRING_EQUAL(formatted(), "shop.yaml:12345:11: a\n"
					    "12345 | höhe → x: 1\n"
					    "      |        ^\n"
					    "shop.yaml:1:5: b\n"
					    "    1 | ä: öö\n"
					    "      |    ^^\n"
					    "shop.yaml:1:2: c\n"
					    "    1 | \tx: y\n"
					    "      | \t^\n");
}

/* A position past the end of its line still gets one caret. The underline ends with the line. */
static void test_edges(void)
{
	struct weir_mark past = mark_at("ab", 1, 3, 1), far = mark_at("ab", 1, 90, 5);
	struct weir_mark rest = mark_at("ab", 1, 2, 900), none = mark_at("ab", 1, 0, 0);

	weir_errs_add(&errs, &past, WEIR_EINVAL, NULL, "a");
	weir_errs_add(&errs, &far, WEIR_EINVAL, NULL, "b");
	weir_errs_add(&errs, &rest, WEIR_EINVAL, NULL, "c");
	weir_errs_add(&errs, &none, WEIR_EINVAL, NULL, "d");
	CU_ASSERT_STRING_EQUAL(formatted(), "shop.yaml:1:3: a\n    1 | ab\n      |   ^\n"
					    "shop.yaml:1:90: b\n    1 | ab\n      |   ^\n"
					    "shop.yaml:1:2: c\n    1 | ab\n      |  ^\n"
					    "shop.yaml:1:1: d\n    1 | ab\n      | ^\n");
}

static void test_control_bytes(void)
{
	struct weir_mark m = mark_at("a\x1b[2Jb\xff\xc2\x9b", 1, 1, 1);

	weir_errs_add(&errs, &m, WEIR_EINVAL, "\a", "bad '%s'", "\x1b[31m\nx\xff\xc2\x9b");
	CU_ASSERT_STRING_EQUAL(formatted(), "shop.yaml:1:1: bad '\\x1b[31m\\nx\\xff\\xc2\\x9b'\n"
					    "    1 | a?[2Jb???\n"
					    "      | ^ \\x07\n");
}

/* Of a long line, the part around the error is kept, cut between characters. */
static void test_long_line(void)
{
	char line[1001];

	memset(line, 'x', sizeof(line));
	line[1000] = '\0';
	memcpy(line + 499, "here", 4);
	struct weir_mark m = mark_at(line, 1, 500, 4);
	weir_errs_add(&errs, &m, WEIR_EINVAL, NULL, "a");
	CU_ASSERT_EQUAL(strncmp(errs.err[0].excerpt, "...xxxx", 7), 0);
	CU_ASSERT_EQUAL(strncmp(errs.err[0].excerpt + errs.err[0].caret - 1, "here", 4), 0);
	CU_ASSERT_EQUAL(errs.err[0].col, 500);
	formatted();
	for (int i = 0; i + 1 < 1000; i += 2)
		memcpy(line + i, "ö", 2);
	weir_errs_add(&errs, &m, WEIR_EINVAL, NULL, "a");
	const char *e = errs.err[0].excerpt;
	CU_ASSERT_EQUAL((unsigned char)e[3], 0xc3);
	CU_ASSERT_EQUAL((unsigned char)e[strlen(e) - 1], 0xb6);
	formatted();
}

static void test_long_texts(void)
{
	char text[2000];

	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	struct weir_mark m = {.file = text, .excerpt = text, .line = 1, .col = 1, .len = 1};
	weir_errs_add(&errs, &m, WEIR_EINVAL, text, "%s", text);
	CU_ASSERT_EQUAL(strlen(errs.err[0].text), sizeof(errs.err[0].text) - 1);
	CU_ASSERT_EQUAL(strlen(errs.err[0].hint), sizeof(errs.err[0].hint) - 1);
	CU_ASSERT_EQUAL(strlen(errs.err[0].file), sizeof(errs.err[0].file) - 1);
	formatted();
}

static void test_many(void)
{
	for (int i = 0; i < WEIR_ERRS_MAX + 5; i++)
		CU_ASSERT_EQUAL(weir_errs_add(&errs, NULL, WEIR_EBUSY, NULL, "%d", i), WEIR_EBUSY);
	CU_ASSERT_EQUAL(errs.n, WEIR_ERRS_MAX);
	CU_ASSERT_EQUAL(errs.total, WEIR_ERRS_MAX + 5);
	CU_ASSERT_STRING_EQUAL(errs.err[WEIR_ERRS_MAX - 1].text, "19");
	formatted();
}

/* Like snprintf: returns the full length and truncates the text to the buffer. */
static void test_small_buffer(void)
{
	char buf[8] = "#######";

	weir_errs_add(&errs, NULL, WEIR_EINVAL, NULL, "0123456789");
	CU_ASSERT_EQUAL(weir_errs_format(&errs, NULL, 0), 11);
	CU_ASSERT_EQUAL(weir_errs_format(&errs, buf, sizeof(buf)), 11);
	CU_ASSERT_STRING_EQUAL(buf, "0123456");
	CU_ASSERT_EQUAL(weir_errs_format(&errs, buf, 1), 11);
	CU_ASSERT_STRING_EQUAL(buf, "");
	formatted();
	CU_ASSERT_EQUAL(weir_errs_format(&errs, buf, sizeof(buf)), 0);
	CU_ASSERT_STRING_EQUAL(buf, "");
}

CUNIT_MAIN("errs", {"layout", test_layout}, {"no place", test_no_place},
    {"characters", test_characters}, {"edges", test_edges}, {"control bytes", test_control_bytes},
    {"long line", test_long_line}, {"long texts", test_long_texts}, {"many", test_many},
    {"small buffer", test_small_buffer})
