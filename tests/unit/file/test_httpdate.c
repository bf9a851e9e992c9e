/* SPDX-License-Identifier: MIT */
#include "file/httpdate.h"

#include <string.h>

#include "cunit_main.h"

static int parse(const char *text, int64_t *at_s)
{
	*at_s = -77;
	return httpdate_parse((struct weir_slice){text, strlen(text)}, at_s);
}

static void test_format(void)
{
	char out[HTTPDATE_SIZE];

	httpdate_format(784111777, out); /* the example of RFC 9110, 5.6.7 */
	CU_ASSERT_STRING_EQUAL(out, "Sun, 06 Nov 1994 08:49:37 GMT");
	httpdate_format(0, out);
	CU_ASSERT_STRING_EQUAL(out, "Thu, 01 Jan 1970 00:00:00 GMT");
	httpdate_format(951782400, out);
	CU_ASSERT_STRING_EQUAL(out, "Tue, 29 Feb 2000 00:00:00 GMT");
	httpdate_format(253402300799, out);
	CU_ASSERT_STRING_EQUAL(out, "Fri, 31 Dec 9999 23:59:59 GMT");
	httpdate_format(INT64_MAX, out);
	CU_ASSERT_STRING_EQUAL(out, "Fri, 31 Dec 9999 23:59:59 GMT");
	httpdate_format(INT64_MIN, out);
	CU_ASSERT_STRING_EQUAL(out, "Mon, 01 Jan 0001 00:00:00 GMT");
}

static void test_three_forms(void)
{
	static const char *const forms[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
	    "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"};

	for (int i = 0; i < 3; i++) {
		int64_t at_s;
		CU_ASSERT_EQUAL(parse(forms[i], &at_s), 0);
		CU_ASSERT_EQUAL(at_s, 784111777);
	}
}

static void test_round_trip(void)
{
	for (int64_t t = 0; t < 4102444800; t += 86400 * 17 + 3607) {
		char out[HTTPDATE_SIZE];
		int64_t at_s;
		httpdate_format(t, out);
		CU_ASSERT_EQUAL(parse(out, &at_s), 0);
		CU_ASSERT_EQUAL(at_s, t);
	}
}

static void test_all_days_and_centuries(void)
{
	int64_t at_s;

	CU_ASSERT_EQUAL(parse("Wednesday, 09-Nov-94 08:49:37 GMT", &at_s), 0);
	CU_ASSERT_EQUAL(parse("Saturday, 12-Nov-94 08:49:37 GMT", &at_s), 0);
	CU_ASSERT_EQUAL(parse("Tuesday, 01-Jan-69 00:00:00 GMT", &at_s), 0);
	CU_ASSERT(at_s < 0);
	CU_ASSERT_EQUAL(parse("Monday, 01-Jan-68 00:00:00 GMT", &at_s), 0);
	CU_ASSERT(at_s > 3000000000);
	CU_ASSERT_EQUAL(parse("Sat, 31 Dec 2016 23:59:60 GMT", &at_s), 0); /* a leap second */
	CU_ASSERT_EQUAL(at_s, 1483228799);
}

static void test_refused(void)
{
	static const char *const bad[] = {"", "x", "Sun", "Sun, 06 Nov 1994 08:49:37",
	    "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 GMT ",
	    " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
	    "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
	    "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
	    "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
	    "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
	    "Sun, 06 Nov 0000 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
	    "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "784111777",
	    "Sun, 29 Feb 1900 00:00:00 GMT"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t at_s;
		CU_ASSERT_EQUAL(parse(bad[i], &at_s), WEIR_EINVAL);
		CU_ASSERT_EQUAL(at_s, -77);
	}
}

CUNIT_MAIN("httpdate", {"format", test_format}, {"three forms", test_three_forms},
    {"round trip", test_round_trip}, {"days and centuries", test_all_days_and_centuries},
    {"refused", test_refused})
