/* SPDX-License-Identifier: MIT */
/* Values are printed as a user would write them, and parsing them again gives the same value. */
#include "knob_table.h"

#include <stdlib.h>

#include "cunit_main.h"

static struct all a;

static const char *print(const char *row)
{
	static char buf[512];

	int n = weir_knob_print(row_of(row), &a, buf, sizeof(buf));
	CU_ASSERT_EQUAL((size_t)n, strlen(buf));
	return buf;
}

static const char *bytes(int64_t v)
{
	a.size_bytes = v;
	return print("size");
}

static const char *duration(int64_t v)
{
	a.spare_ns = v;
	return print("spare");
}

static const char *rate(double v)
{
	a.rate = v;
	return print("rate");
}

static const char *share(double v)
{
	a.share = v;
	return print("share");
}

static void test_numbers(void)
{
	a.signed_count = INT64_MIN;
	CU_ASSERT_STRING_EQUAL(print("signed_count"), "-9223372036854775808");
	a.signed_count = -1;
	CU_ASSERT_STRING_EQUAL(print("signed_count"), "-1");
	a.count = -1;
	CU_ASSERT_STRING_EQUAL(print("count"), "auto");
	CU_ASSERT_STRING_EQUAL(bytes(0), "0");
	CU_ASSERT_STRING_EQUAL(bytes(1), "1");
	CU_ASSERT_STRING_EQUAL(bytes(1000), "1kB");
	CU_ASSERT_STRING_EQUAL(bytes(1024), "1KiB");
	CU_ASSERT_STRING_EQUAL(bytes(1024000), "1000KiB");
	CU_ASSERT_STRING_EQUAL(bytes(64 << 20), "64MiB");
	CU_ASSERT_STRING_EQUAL(bytes(3LL << 30), "3GiB");
	CU_ASSERT_STRING_EQUAL(bytes(1500000), "1500kB");
	CU_ASSERT_STRING_EQUAL(bytes(1001), "1001");
}

static void test_durations(void)
{
	CU_ASSERT_STRING_EQUAL(duration(-1), "auto");
	CU_ASSERT_STRING_EQUAL(duration(0), "0");
	CU_ASSERT_STRING_EQUAL(duration(999), "999ns");
	CU_ASSERT_STRING_EQUAL(duration(1000), "1us");
	CU_ASSERT_STRING_EQUAL(duration(1234), "1.234us");
	CU_ASSERT_STRING_EQUAL(duration(200000), "200us");
	CU_ASSERT_STRING_EQUAL(duration(1500000), "1.5ms");
	CU_ASSERT_STRING_EQUAL(duration(500000000), "500ms");
	CU_ASSERT_STRING_EQUAL(duration(1500000000), "1.5s");
	CU_ASSERT_STRING_EQUAL(duration(1000001000), "1000.001ms");
	CU_ASSERT_STRING_EQUAL(duration(1000000001), "1000000.001us");
	CU_ASSERT_STRING_EQUAL(duration(90000000000), "90s");
	CU_ASSERT_STRING_EQUAL(duration(120000000000), "2m");
	CU_ASSERT_STRING_EQUAL(duration(7200000000000), "2h");
}

static void test_reals(void)
{
	CU_ASSERT_STRING_EQUAL(rate(0), "0");
	CU_ASSERT_STRING_EQUAL(rate(0.1), "0.1");
	CU_ASSERT_STRING_EQUAL(rate(1000000), "1000000");
	CU_ASSERT_STRING_EQUAL(rate(1e9), "1000000000");
	CU_ASSERT_STRING_EQUAL(rate(-5), "0");
	CU_ASSERT_STRING_EQUAL(rate(1e300), "10000000000");
	CU_ASSERT_STRING_EQUAL(share(0.05), "5%");
	CU_ASSERT_STRING_EQUAL(share(0.005), "0.5%");
	CU_ASSERT_STRING_EQUAL(share(1.0 / 3), "33.333333333%");
	CU_ASSERT_STRING_EQUAL(share(1), "100%");
}

static void test_texts(void)
{
	a.text = (char *)(uintptr_t) "two words\n";
	CU_ASSERT_STRING_EQUAL(print("text"), "two words\n");
	a.text = NULL;
	CU_ASSERT_STRING_EQUAL(print("text"), "");
	a.choice = 1;
	CU_ASSERT_STRING_EQUAL(print("choice"), "green");
	a.choice = 9;
	CU_ASSERT_STRING_EQUAL(print("choice"), "");
	a.flag = true;
	CU_ASSERT_STRING_EQUAL(print("flag"), "true");
}

static void test_nested(void)
{
	static char one[] = "/app/*", two[] = "a \"b\"\\\n\x01", none[] = "";
	char *items[] = {one, two, none};
	struct inner records[] = {{1, one}, {2, NULL}};

	CU_ASSERT_STRING_EQUAL(print("list"), "[]");
	a.list = (struct weir_strings){3, items};
	CU_ASSERT_STRING_EQUAL(print("list"), "[\"/app/*\", \"a \\\"b\\\"\\\\\\n\\x01\", \"\"]");
	a.records = (struct weir_records){2, (char *)records};
	CU_ASSERT_STRING_EQUAL(
	    print("records"), "[{ n: 1, name: \"/app/*\" }, { n: 2, name: \"\" }]");
	a.inner = (struct inner){5, (char *)(uintptr_t) "x.y"};
	CU_ASSERT_STRING_EQUAL(print("inner"), "{ n: 5, name: x.y }");
}

static void test_cut(void)
{
	char buf[4];

	a.signed_count = 123456;
	CU_ASSERT_EQUAL(weir_knob_print(row_of("signed_count"), &a, buf, sizeof(buf)), 6);
	CU_ASSERT_STRING_EQUAL(buf, "123");
	CU_ASSERT_EQUAL(weir_knob_print(row_of("signed_count"), &a, NULL, 0), 6);
}

static void round_trip(const char *row, int64_t value)
{
	char buf[64], why[128];
	struct all b = {0};

	*(int64_t *)((char *)&a + row_of(row)->offset) = value;
	weir_knob_print(row_of(row), &a, buf, sizeof(buf));
	CU_ASSERT_EQUAL(weir_knob_parse(row_of(row), buf, &b, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(*(int64_t *)((char *)&b + row_of(row)->offset), value);
}

static void test_round_trips(void)
{
	unsigned seed = 7;

	for (int i = 0; i < 20000; i++) {
		int64_t v = ((int64_t)rand_r(&seed) << 28 ^ rand_r(&seed)) >> (rand_r(&seed) % 58);
		round_trip("size", v);
		round_trip("spare", v);
		round_trip("signed_count", -v);
	}
	for (int i = 0; i < 20000; i++) {
		char buf[64], why[128];
		struct all b = {0};
		a.rate = (double)rand_r(&seed) / 1000;
		weir_knob_print(row_of("rate"), &a, buf, sizeof(buf));
		CU_ASSERT_EQUAL(weir_knob_parse(row_of("rate"), buf, &b, why, sizeof(why)), 0);
		CU_ASSERT_EQUAL(a.rate, b.rate);
	}
}

/* A real number can also be auto, stored as -1; the text "-1" itself is refused. */
static void test_real_auto(void)
{
	const struct weir_knob row = {
	    .name = "part", .type = WEIR_KNOB_RATIO, .max = 0.5, .flags = WEIR_KNOB_AUTO};
	const struct weir_knob plain = {.name = "part", .type = WEIR_KNOB_RATIO, .max = 0.5};
	char buf[32], why[200];
	double part = 0.25;

	CU_ASSERT_EQUAL(weir_knob_parse(&row, "auto", &part, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(part, -1);
	weir_knob_print(&row, &part, buf, sizeof(buf));
	CU_ASSERT_STRING_EQUAL(buf, "auto");
	CU_ASSERT_EQUAL(weir_knob_parse(&row, "0", &part, why, sizeof(why)), 0);
	weir_knob_print(&row, &part, buf, sizeof(buf));
	CU_ASSERT_STRING_EQUAL(buf, "0%");
	CU_ASSERT_EQUAL(weir_knob_parse(&row, "-1", &part, why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_knob_parse(&plain, "auto", &part, why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(part, 0);
}

CUNIT_MAIN("knob_print", {"numbers", test_numbers}, {"durations", test_durations},
    {"reals", test_reals}, {"texts", test_texts}, {"nested", test_nested}, {"cut", test_cut},
    {"round trips", test_round_trips}, {"auto for reals", test_real_auto})
