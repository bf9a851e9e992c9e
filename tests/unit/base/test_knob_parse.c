/* SPDX-License-Identifier: MIT */
/* Parsing one value from text: each unit, each bound, each message. A refused value leaves the
 * member unchanged. */
#include "knob_table.h"

#include "cunit_main.h"

static struct all a;
static char why[200];

/* Parse `text` and return the message, "" on success. */
static const char *parse(const char *row, const char *text)
{
	snprintf(why, sizeof(why), "?");
	int rc = weir_knob_parse(row_of(row), text, &a, why, sizeof(why));
	if (rc == 0)
		return "";
	CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
	return why;
}

static int64_t whole(const char *row, const char *text)
{
	CU_ASSERT_STRING_EQUAL(parse(row, text), "");
	return *(int64_t *)((char *)&a + row_of(row)->offset);
}

static void test_bool(void)
{
	CU_ASSERT_STRING_EQUAL(parse("flag", "true"), "");
	CU_ASSERT_TRUE(a.flag);
	CU_ASSERT_STRING_EQUAL(parse("flag", "yes"), "'yes' is not true or false");
	CU_ASSERT_TRUE(a.flag);
	CU_ASSERT_STRING_EQUAL(parse("flag", "false"), "");
	CU_ASSERT_FALSE(a.flag);
	CU_ASSERT_STRING_EQUAL(parse("flag", "True"), "'True' is not true or false");
	CU_ASSERT_STRING_EQUAL(parse("flag", ""), "'' is not true or false");
}

static void test_int(void)
{
	CU_ASSERT_EQUAL(whole("count", "20k"), 20000);
	CU_ASSERT_EQUAL(whole("count", "1M"), 1000000);
	CU_ASSERT_EQUAL(whole("count", "1.5k"), 1500);
	CU_ASSERT_EQUAL(whole("count", "auto"), -1);
	CU_ASSERT_EQUAL(whole("signed_count", "-5"), -5);
	CU_ASSERT_EQUAL(whole("signed_count", "0"), 0);
	CU_ASSERT_EQUAL(whole("signed_count", "-0"), 0);
	CU_ASSERT_EQUAL(whole("signed_count", "999999999999999999"), 999999999999999999);
	CU_ASSERT_EQUAL(whole("signed_count", "1.0"), 1);
}

static void test_int_refused(void)
{
	a.count = 7;
	CU_ASSERT_STRING_EQUAL(parse("count", "0"), "'0' is too small: at least 1");
	CU_ASSERT_STRING_EQUAL(
	    parse("count", "1000001"), "'1000001' is too large: at most 1000000");
	CU_ASSERT_STRING_EQUAL(
	    parse("count", "-1"), "'-1' is negative"); /* -1 is not a spelling of auto */
	CU_ASSERT_STRING_EQUAL(parse("count", "1.5"), "'1.5' is not a whole number");
	CU_ASSERT_STRING_EQUAL(parse("count", ""), "'' is not a whole number");
	CU_ASSERT_STRING_EQUAL(parse("count", "many"), "'many' is not a whole number");
	CU_ASSERT_STRING_EQUAL(parse("count", "-"), "'-' is not a whole number");
	CU_ASSERT_STRING_EQUAL(parse("count", "+5"), "'+5' is not a whole number");
	CU_ASSERT_STRING_EQUAL(parse("count", " 5"), "' 5' is not a whole number");
	CU_ASSERT_STRING_EQUAL(parse("count", "5 "), "'5 ' has the unknown unit ' ': write k or M");
	CU_ASSERT_STRING_EQUAL(parse("count", "5K"), "'5K' has the unknown unit 'K': write k or M");
	CU_ASSERT_STRING_EQUAL(
	    parse("count", "1e3"), "'1e3' has the unknown unit 'e3': write k or M");
	CU_ASSERT_STRING_EQUAL(
	    parse("count", "0x10"), "'0x10' has the unknown unit 'x10': write k or M");
	CU_ASSERT_STRING_EQUAL(parse("count", "010"), "'010' must not begin with 0");
	CU_ASSERT_STRING_EQUAL(parse("count", "1."), "'1.' has the unknown unit '.': write k or M");
	CU_ASSERT_STRING_EQUAL(parse("count", ".5"), "'.5' is not a whole number");
	CU_ASSERT_STRING_EQUAL(
	    parse("count", "1.2.3"), "'1.2.3' has the unknown unit '.3': write k or M");
	CU_ASSERT_STRING_EQUAL(parse("signed_count", "auto"), "'auto' is not allowed here");
	CU_ASSERT_EQUAL(whole("signed_count", "9223372036854775807"), INT64_MAX);
	CU_ASSERT_EQUAL(whole("signed_count", "9223372036854M"), 9223372036854000000);
	CU_ASSERT_EQUAL(whole("signed_count", "9223372036854000000"), 9223372036854000000);
	CU_ASSERT_STRING_EQUAL(parse("signed_count", "10000000000000000000"),
	    "'10000000000000000000' has too many digits");
	CU_ASSERT_STRING_EQUAL(
	    parse("signed_count", "9223372036854775808"), "'9223372036854775808' is too large");
	CU_ASSERT_STRING_EQUAL(
	    parse("signed_count", "999999999999999999M"), "'999999999999999999M' is too large");
	CU_ASSERT_EQUAL(a.count, 7);
}

static void test_bytes(void)
{
	CU_ASSERT_EQUAL(whole("size", "0"), 0);
	CU_ASSERT_EQUAL(whole("size", "1500"), 1500);
	CU_ASSERT_EQUAL(whole("size", "12B"), 12);
	CU_ASSERT_EQUAL(whole("size", "1kB"), 1000);
	CU_ASSERT_EQUAL(whole("size", "1KiB"), 1024);
	CU_ASSERT_EQUAL(whole("size", "1MB"), 1000000);
	CU_ASSERT_EQUAL(whole("size", "1.5MiB"), 3 << 19);
	CU_ASSERT_EQUAL(whole("size", "2GB"), 2000000000);
	CU_ASSERT_EQUAL(whole("size", "2GiB"), 2LL << 30);
	CU_ASSERT_STRING_EQUAL(parse("size", "64K"),
	    "'64K' has the unknown unit 'K': write B, kB, MB, GB, KiB, MiB or GiB");
	CU_ASSERT_STRING_EQUAL(parse("size", "0.3KiB"), "'0.3KiB' is not a whole number of bytes");
	CU_ASSERT_STRING_EQUAL(parse("size", "-1"), "'-1' is negative");
	CU_ASSERT_STRING_EQUAL(
	    parse("size", "9000000000000GiB"), "'9000000000000GiB' is too large");
	CU_ASSERT_STRING_EQUAL(
	    parse("size", "big"), "'big' is not a size: write it like 64KiB or 1MB");
	CU_ASSERT_EQUAL(a.size_bytes, 2LL << 30);
}

static void test_duration(void)
{
	CU_ASSERT_EQUAL(whole("spare", "0"), 0);
	CU_ASSERT_EQUAL(whole("spare", "0.0"), 0);
	CU_ASSERT_EQUAL(whole("spare", "7ns"), 7);
	CU_ASSERT_EQUAL(whole("spare", "200us"), 200000);
	CU_ASSERT_EQUAL(whole("spare", "10ms"), 10000000);
	CU_ASSERT_EQUAL(whole("spare", "1.5s"), 1500000000);
	CU_ASSERT_EQUAL(whole("spare", "2m"), 120000000000);
	CU_ASSERT_EQUAL(whole("spare", "1h"), 3600000000000);
	CU_ASSERT_EQUAL(whole("spare", "auto"), -1);
	CU_ASSERT_EQUAL(whole("wait", "1us"), 1000);
	CU_ASSERT_EQUAL(whole("wait", "60s"), 60000000000);
}

static void test_duration_refused(void)
{
	a.wait_ns = 7;
	CU_ASSERT_STRING_EQUAL(parse("wait", "10"), "'10' needs a unit: write 10ms or 10s");
	CU_ASSERT_STRING_EQUAL(parse("wait", "1.5"), "'1.5' needs a unit: write 1.5ms or 1.5s");
	CU_ASSERT_STRING_EQUAL(parse("wait", "999ns"), "'999ns' is too small: at least 1us");
	CU_ASSERT_STRING_EQUAL(parse("wait", "61s"), "'61s' is too large: at most 1m");
	CU_ASSERT_STRING_EQUAL(parse("wait", "0"), "'0' is too small: at least 1us");
	CU_ASSERT_STRING_EQUAL(parse("wait", "0.5ns"), "'0.5ns' is finer than 1ns");
	CU_ASSERT_STRING_EQUAL(parse("wait", "-5ms"), "'-5ms' is negative");
	CU_ASSERT_STRING_EQUAL(parse("wait", "auto"), "'auto' is not allowed here");
	CU_ASSERT_STRING_EQUAL(parse("wait", "5min"),
	    "'5min' has the unknown unit 'min': write ns, us, ms, s, m or h");
	CU_ASSERT_STRING_EQUAL(
	    parse("wait", "soon"), "'soon' is not a duration: write it like 10ms or 1.5s");
	CU_ASSERT_STRING_EQUAL(
	    parse("spare", "999999999999999999h"), "'999999999999999999h' is too large");
	CU_ASSERT_STRING_EQUAL(parse("spare", "-1ns"), "'-1ns' is negative");
	CU_ASSERT_EQUAL(a.wait_ns, 7);
}

static void test_rate(void)
{
	CU_ASSERT_STRING_EQUAL(parse("rate", "500"), "");
	CU_ASSERT_EQUAL(a.rate, 500);
	CU_ASSERT_STRING_EQUAL(parse("rate", "0.25"), "");
	CU_ASSERT_EQUAL(a.rate, 0.25);
	CU_ASSERT_STRING_EQUAL(parse("rate", "1.2M"), "");
	CU_ASSERT_EQUAL(a.rate, 1200000);
	CU_ASSERT_STRING_EQUAL(parse("rate", "0.1"), "");
	CU_ASSERT_EQUAL(a.rate, 0.1);
	CU_ASSERT_STRING_EQUAL(
	    parse("rate", "nan"), "'nan' is not a rate per second: write it like 500 or 20k");
	CU_ASSERT_STRING_EQUAL(
	    parse("rate", "inf"), "'inf' is not a rate per second: write it like 500 or 20k");
	CU_ASSERT_STRING_EQUAL(parse("rate", "-1"), "'-1' is negative");
	CU_ASSERT_STRING_EQUAL(parse("rate", "2000M"), "'2000M' is too large: at most 1000000000");
	CU_ASSERT_STRING_EQUAL(
	    parse("rate", "5/s"), "'5/s' has the unknown unit '/s': write k or M");
	CU_ASSERT_EQUAL(a.rate, 0.1);
}

static void test_ratio(void)
{
	CU_ASSERT_STRING_EQUAL(parse("share", "5%"), "");
	CU_ASSERT_EQUAL(a.share, 0.05);
	CU_ASSERT_STRING_EQUAL(parse("share", "0.05"), "");
	CU_ASSERT_EQUAL(a.share, 0.05);
	CU_ASSERT_STRING_EQUAL(parse("share", "0.5%"), "");
	CU_ASSERT_EQUAL(a.share, 0.005);
	CU_ASSERT_STRING_EQUAL(parse("share", "1"), "");
	CU_ASSERT_EQUAL(a.share, 1);
	CU_ASSERT_STRING_EQUAL(parse("share", "100%"), "");
	CU_ASSERT_STRING_EQUAL(parse("share", "0"), "");
	CU_ASSERT_STRING_EQUAL(parse("share", "1.1"), "'1.1' is too large: at most 100%");
	CU_ASSERT_STRING_EQUAL(parse("share", "-1%"), "'-1%' is negative");
	CU_ASSERT_STRING_EQUAL(parse("share", "5k"), "'5k' has the unknown unit 'k': write %");
	CU_ASSERT_EQUAL(a.share, 0);
}

static void test_string(void)
{
	CU_ASSERT_STRING_EQUAL(parse("text", "one"), "");
	CU_ASSERT_STRING_EQUAL(parse("text", ""), "");
	CU_ASSERT_STRING_EQUAL(a.text, "");
	CU_ASSERT_STRING_EQUAL(parse("text", "auto"), "");
	CU_ASSERT_STRING_EQUAL(a.text, "auto");
	weir_knobs_fini(all_knobs, &a);
}

static void test_enum(void)
{
	CU_ASSERT_STRING_EQUAL(parse("choice", "red"), "");
	CU_ASSERT_EQUAL(a.choice, 0);
	CU_ASSERT_STRING_EQUAL(parse("choice", "blue"), "");
	CU_ASSERT_EQUAL(a.choice, 2);
	CU_ASSERT_STRING_EQUAL(parse("choice", "gren"),
	    "'gren' is not one of red, green, blue: did you mean 'green'?");
	CU_ASSERT_STRING_EQUAL(
	    parse("choice", "violet"), "'violet' is not one of red, green, blue");
	CU_ASSERT_STRING_EQUAL(
	    parse("choice", "red|green"), "'red|green' is not one of red, green, blue");
	CU_ASSERT_STRING_EQUAL(parse("choice", ""), "'' is not one of red, green, blue");
	CU_ASSERT_EQUAL(a.choice, 2);
}

static void test_not_scalar(void)
{
	CU_ASSERT_STRING_EQUAL(parse("list", "a"), "'list' takes a list, not a single string");
	CU_ASSERT_STRING_EQUAL(
	    parse("records", "a"), "'records' takes a list, not a single string");
	CU_ASSERT_STRING_EQUAL(parse("inner", "a"), "'inner' takes a map, not a single string");
}

/* The message is truncated to the buffer, whatever the length of the value. */
static void test_small_why(void)
{
	char small[8], text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (const struct weir_knob *row = all_knobs; row->name; row++) {
		if (row->type == WEIR_KNOB_STRING)
			continue;
		CU_ASSERT_EQUAL(weir_knob_parse(row, text, &a, small, sizeof(small)), WEIR_EINVAL);
		CU_ASSERT_EQUAL(strlen(small), sizeof(small) - 1);
		CU_ASSERT_EQUAL(weir_knob_parse(row, text, &a, NULL, 0), WEIR_EINVAL);
	}
}

CUNIT_MAIN("knob_parse", {"bool", test_bool}, {"int", test_int}, {"int refused", test_int_refused},
    {"bytes", test_bytes}, {"duration", test_duration}, {"duration refused", test_duration_refused},
    {"rate", test_rate}, {"ratio", test_ratio}, {"string", test_string}, {"enum", test_enum},
    {"not scalar", test_not_scalar}, {"small why", test_small_why})
