/* SPDX-License-Identifier: MIT */
/* Numbers formatted for people, and texts that cannot become markup. */
#include "report/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define NBSP "\xC2\xA0"

static const struct {
	format_fn *print;
	double value;
	const char *text;
} numbers[] = {
    {format_count, 0, "0"},
    {format_count, 9999, "9999"},
    {format_count, 12345, "12.3k"},
    {format_count, 2500000, "2.5M"},
    {format_rate, 950, "950/s"},
    {format_rate, 10000, "10k/s"},
    {format_rate, NAN, "\xE2\x80\x93"},
    {format_time, 0, "0"},
    {format_time, 35e-6, "35" NBSP "\xC2\xB5s"},
    {format_time, 0.0012, "1.2" NBSP "ms"},
    {format_time, 0.9999, "1" NBSP "s"},
    {format_time, 2.5, "2.5" NBSP "s"},
    {format_clock, 12.5, "12.5" NBSP "s"},
    {format_share, 0.1234, "12.3" NBSP "%"},
    {format_share, 0, "0" NBSP "%"},
    {format_tail, 0, "0" NBSP "%"},
    {format_tail, 1, "90" NBSP "%"},
    {format_tail, 2, "99" NBSP "%"},
    {format_tail, 3, "99.9" NBSP "%"},
    {format_tail, 5, "99.999" NBSP "%"},
    {format_ratio, 1.25,
	"\xC3\x97"
	"1.25"},
    {format_ratio, 0.00412,
	"\xC3\x97"
	"0.0041"},
    {format_ratio, INFINITY, "\xE2\x80\x93"},
};

static void test_numbers(void)
{
	char text[FORMAT_MAX];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CU_ASSERT_STRING_EQUAL(numbers[i].print(text, numbers[i].value), numbers[i].text);
}

/* For any value the text fits into its buffer. */
static void test_extremes(void)
{
	format_fn *const all[] = {format_count, format_rate, format_time, format_clock,
	    format_share, format_tail, format_ratio};
	const double values[] = {1e300, -1e300, 1e-300, INFINITY, -INFINITY, NAN, 1e15, -1};
	char text[FORMAT_MAX + 1];

	for (size_t f = 0; f < sizeof(all) / sizeof(all[0]); f++) {
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			memset(text, 'x', sizeof(text));
			all[f](text, values[v]);
			CU_ASSERT_PTR_NOT_NULL(memchr(text, '\0', FORMAT_MAX));
			CU_ASSERT_EQUAL(text[FORMAT_MAX], 'x');
		}
	}
}

/* The output of markup_text for `text`, in static storage. */
static const char *escaped(const char *text)
{
	static char buf[256];
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	markup_text(out, text);
	fclose(out);
	return buf;
}

static void test_markup(void)
{
	CU_ASSERT_STRING_EQUAL(
	    escaped("<a href='x' b=\"y\">&"), "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;");
	CU_ASSERT_STRING_EQUAL(escaped("caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x90\x9F"),
	    "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x90\x9F");
	CU_ASSERT_STRING_EQUAL(escaped("a\x01\x1B[31m"), "a\xEF\xBF\xBD\xEF\xBF\xBD[31m");
	CU_ASSERT_STRING_EQUAL(escaped("\xE9"), "\xEF\xBF\xBD");                 /* Latin-1 */
	CU_ASSERT_STRING_EQUAL(escaped("\xC0\xBC"), "\xEF\xBF\xBD\xEF\xBF\xBD"); /* overlong '<' */
	CU_ASSERT_STRING_EQUAL(
	    escaped("\xE2\x80\xAEx"), "\xEF\xBF\xBDx"); /* reverses the text direction */
	CU_ASSERT_STRING_EQUAL(escaped("\xF0\x9F"), "\xEF\xBF\xBD\xEF\xBF\xBD"); /* truncated */
	CU_ASSERT_STRING_EQUAL(
	    escaped("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* a surrogate */
}

/* Only texts from outside are escaped. */
static void test_markup_format(void)
{
	char buf[64];
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	markup(out, "<b x='%s'>%d %.2f %f 5%%", "'<&", -3, 1.005, 0.5);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(buf, "<b x='&#39;&lt;&amp;'>-3 1.00 0.500000 5%");
}

CUNIT_MAIN("format", {"numbers", test_numbers}, {"extremes", test_extremes},
    {"markup", test_markup}, {"markup with a format", test_markup_format})
