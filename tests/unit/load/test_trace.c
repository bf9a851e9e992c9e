/* SPDX-License-Identifier: MIT */
/* Traces: send times read from lines and taken from a log. */
#include "load/trace.h"

#include "load_text.h"

#define MS 1000000LL

static struct load_plan plan;
static struct weir_err err;

static int read_text(const char *text)
{
	char path[] = "trace.XXXXXX";

	make_file(path, text, strlen(text));
	int rc = load_trace_read(&plan, path, &err);
	unlink(path);
	return rc;
}

static void check_time(const char *text, int64_t ns)
{
	int64_t at_ns = -1;

	CU_ASSERT_EQUAL(load_trace_time(text, &at_ns, &err), 0);
	CU_ASSERT_EQUAL(at_ns, ns);
}

static void test_times(void)
{
	check_time("0", 0);
	check_time("0.0125", 12500000);
	check_time("12", 12000 * MS);
	check_time("12ms", 12 * MS);
	check_time("1.5us  ", 1500);
	check_time("0.30000000000000004", 300 * MS); /* as programs print a double */
	check_time("1.123456789123", 1123456789);
}

static void test_bad_times(void)
{
	static const char *const bad[][2] = {{"abc", "'abc'"}, {"-1", "'-1"}, {"1e-5", "'1e-5'"},
	    {"1 2", "'1 2' is not a time"}, {"1.5ns", "finer than 1ns"}, {"1parsec", "'parsec'"},
	    {"1..2", "'1..2"}, {".5", "'.5"}, {"9000h", "too large"}, {"", "''"},
	    {"99999999999999999999", "'99999999999999999999s'"}};
	char overlong[100];
	int64_t at_ns;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(load_trace_time(bad[i][0], &at_ns, &err), &err, bad[i][1]);
	memset(overlong, '1', sizeof(overlong));
	overlong[99] = '\0';
	check_refused(load_trace_time(overlong, &at_ns, &err), &err, "is not a time");
}

static void test_file(void)
{
	char text[20000] = "";
	size_t n = 0;

	CU_ASSERT_EQUAL(read_text("0\n0.001\r\n\n1ms\n 12ms"), WEIR_EINVAL); /* leading space */
	CU_ASSERT_EQUAL(read_text("0\n0.001\r\n\n1ms\n12ms"), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_trace, 4);
	CU_ASSERT_TRUE(plan.trace_ns[0] == 0 && plan.trace_ns[1] == MS && plan.trace_ns[2] == MS &&
		       plan.trace_ns[3] == 12 * MS);
	check_refused(read_text("5ms\n\n4ms\n"), &err, ":3: the time is earlier");
	check_refused(read_text("5ms\nx\n"), &err, ":2: 'x'");
	check_refused(read_text("\n\n"), &err, "has no send time");
	CU_ASSERT_EQUAL(plan.n_trace, 4); /* an invalid file changes nothing */
	for (int i = 0; i < 3000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d\n", i);
	CU_ASSERT_EQUAL(read_text(text), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_trace, 3000);
	CU_ASSERT_EQUAL(plan.trace_ns[2999], 2999 * 1000 * MS);
	CU_ASSERT_EQUAL(load_trace_read(&plan, "no/such", &err), WEIR_ESYS);
	load_plan_fini(&plan);
}

static void test_replay(void)
{
	struct load_request requests[3] = {{.at_ns = 0}, {.at_ns = 10}, {.at_ns = 30}};
	struct load_class cls = {.name = "log", .n_requests = 3, .request = requests};

	CU_ASSERT_EQUAL(load_trace_replay(&plan, &cls, 0.5, &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_trace, 3);
	CU_ASSERT_TRUE(plan.trace_ns[1] == 20 && plan.trace_ns[2] == 60);
	requests[2].at_ns = -1;
	check_refused(load_trace_replay(&plan, &cls, 1, &err), &err, "request 3 of class 'log'");
	requests[2].at_ns = 9;
	check_refused(load_trace_replay(&plan, &cls, 1, &err), &err, "request 3 of class 'log'");
	CU_ASSERT_EQUAL(plan.n_trace, 3);
	load_plan_fini(&plan);
}

CUNIT_MAIN("trace", {"times", test_times}, {"bad times", test_bad_times}, {"file", test_file},
    {"replay", test_replay})
