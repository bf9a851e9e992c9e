/* SPDX-License-Identifier: MIT */
/* Growing texts: whatever the lengths, no byte is lost, and text from outside becomes valid
 * JSON. */
#include "admin/text/textbuf.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin/text/utf8.h"
#include "cunit_main.h"

/* `n` bytes, each different from its neighbours. */
static char *bytes(size_t n)
{
	char *p = malloc(n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + i % 26);
	p[n] = '\0';
	return p;
}

/* Lengths around the sizes of buffers. */
static const size_t sizes[] = {0, 1, 510, 511, 512, 513, 4094, 4095, 4096, 4097, 8191, 8192, 20000};

#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_append(void)
{
	for (size_t i = 0; i < N_SIZES; i++) {
		for (size_t k = 0; k < N_SIZES; k++) {
			struct textbuf t = {0};
			char *first = bytes(sizes[i]), *second = bytes(sizes[k]);
			textbuf_append(&t, first, sizes[i]);
			textbuf_append(&t, second, sizes[k]);
			CU_ASSERT_EQUAL_FATAL(t.n, sizes[i] + sizes[k]);
			CU_ASSERT_TRUE(t.size > t.n);
			CU_ASSERT_EQUAL(memcmp(t.p, first, sizes[i]), 0);
			CU_ASSERT_STRING_EQUAL(t.p + sizes[i], second);
			free(first);
			free(second);
			textbuf_fini(&t);
		}
	}
}

static void test_printf(void)
{
	for (size_t i = 0; i < N_SIZES; i++) {
		for (size_t k = 0; k < N_SIZES; k++) {
			struct textbuf t = {0};
			char *first = bytes(sizes[i]), *second = bytes(sizes[k]);
			textbuf_printf(&t, "%s", first);
			textbuf_printf(&t, "%s%d", second, 42);
			CU_ASSERT_EQUAL_FATAL(t.n, sizes[i] + sizes[k] + 2);
			CU_ASSERT_EQUAL(memcmp(t.p, first, sizes[i]), 0);
			CU_ASSERT_EQUAL(memcmp(t.p + sizes[i], second, sizes[k]), 0);
			CU_ASSERT_STRING_EQUAL(t.p + sizes[i] + sizes[k], "42");
			free(first);
			free(second);
			textbuf_fini(&t);
		}
	}
}

/* The bytes belong to the caller, and the text is empty again. */
static void test_take(void)
{
	struct textbuf t = {0};
	size_t n = 7;
	char *p = textbuf_take(&t, &n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_STRING_EQUAL(p, "");
	CU_ASSERT_EQUAL(n, 0);
	free(p);
	textbuf_printf(&t, "one");
	p = textbuf_take(&t, &n);
	CU_ASSERT_STRING_EQUAL(p, "one");
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_TRUE(t.p == NULL && t.n == 0 && t.size == 0);
	free(p);
	textbuf_append(&t, "two", 3);
	CU_ASSERT_STRING_EQUAL(t.p, "two");
	textbuf_fini(&t);
	CU_ASSERT_TRUE(t.p == NULL && t.n == 0 && t.size == 0 && !t.failed);
}

/* Once memory ran out, the text stays empty. */
static void test_failed(void)
{
	struct textbuf t = {.failed = true};
	char *longer = bytes(600);
	size_t n = 7;

	textbuf_append(&t, "x", 1);
	textbuf_printf(&t, "x");
	textbuf_printf(&t, "%s", longer);
	textbuf_json_string(&t, "x");
	CU_ASSERT_TRUE(t.p == NULL && t.n == 0 && t.failed);
	CU_ASSERT_PTR_NULL(textbuf_take(&t, &n));
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_TRUE(t.failed);
	free(longer);
}

static void test_json_string(void)
{
	static const struct {
		const char *text, *json;
	} row[] = {{"", "\"\""}, {"a b", "\"a b\""}, {"\"", "\"\\\"\""}, {"\\", "\"\\\\\""},
	    {"a\"b\\c", "\"a\\\"b\\\\c\""}, {"\n\t\x01\x1f", "\"\\u000a\\u0009\\u0001\\u001f\""},
	    {" ~\x7f", "\" ~\x7f\""},
	    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
	    {"\xff", "\"?\""}, {"a\x80z", "\"a?z\""}, {"\xe2\x82", "\"??\""},
	    {"\xe2\x82\"", "\"??\\\"\""}, {"\xc3", "\"?\""}, {"/'", "\"/'\""}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct textbuf t = {0};
		textbuf_json_string(&t, row[i].text);
		CU_ASSERT_STRING_EQUAL(t.p, row[i].json);
		textbuf_fini(&t);
	}
	/* every byte: jansson reads back what is a character of its own */
	for (int c = 1; c < 256; c++) {
		const char text[] = {'<', (char)c, '>', '\0'};
		struct textbuf t = {0};
		textbuf_json_string(&t, text);
		json_t *json = json_loads(t.p, JSON_DECODE_ANY, NULL);
		CU_ASSERT_PTR_NOT_NULL(json);
		CU_ASSERT_STRING_EQUAL(json_string_value(json), c < 0x80 ? text : "<?>");
		json_decref(json);
		textbuf_fini(&t);
	}
}

/* Lengths of characters at the bounds of their ranges; 0 for what is not a character. */
static void test_utf8(void)
{
	static const struct {
		const char *text;
		size_t n;
	} row[] = {{"\x01", 1}, {"\x7f", 1}, {"\x80", 0}, {"\xbf", 0}, {"\xc0\x80", 0},
	    {"\xc1\xbf", 0}, {"\xc2\x80", 2}, {"\xdf\xbf", 2}, {"\xc2", 0}, {"\xc2z", 0},
	    {"\xc2\xc0", 0}, {"\xe0\xa0\x80", 3}, {"\xef\xbf\xbf", 3}, {"\xe0\xa0", 0},
	    {"\xe0\xa0z", 0}, {"\xe0z\x80", 0}, {"\xf0\x90\x80\x80", 4}, {"\xf4\x8f\xbf\xbf", 4},
	    {"\xf0\x90\x80", 0}, {"\xf0\x90\x80z", 0}, {"\xf5\x80\x80\x80", 0}, {"\xff", 0}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		CU_ASSERT_EQUAL(utf8_bytes(row[i].text), row[i].n);
		CU_ASSERT_EQUAL(utf8_whole(row[i].text), row[i].n > 0);
	}
	CU_ASSERT_TRUE(utf8_whole("") && utf8_whole("a\xc3\xa9\xe2\x82\xac z"));
	CU_ASSERT_FALSE(utf8_whole("a\xc3\xa9\xe2\x82") || utf8_whole("a\xff z"));
}

CUNIT_MAIN("textbuf", {"append", test_append}, {"printf", test_printf}, {"take", test_take},
    {"out of memory", test_failed}, {"JSON strings", test_json_string}, {"UTF-8", test_utf8})
