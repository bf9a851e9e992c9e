/* SPDX-License-Identifier: MIT */
/* The line of progress of `weir bench`: the bar, the time left, and its width. */
#include "cli/load/bench.h"

#include <string.h>

#include "cunit_main.h"

static struct load_plan plan;

static struct load_second row_of(int64_t at_s)
{
	struct load_second row = {.at_ns = at_s * 1000000000, .phase = 1};

	row.all.offered = 489;
	row.all.outcome[LOAD_OK] = 470;
	row.all.outcome[LOAD_DEGRADED] = 10;
	row.all.outcome[LOAD_SHED] = 9;
	row.all.p99_ns = 31200000;
	return row;
}

static struct bench_progress progress_of(const char *part)
{
	snprintf(plan.phase[1].name, sizeof(plan.phase[1].name), "1.2x");
	return (struct bench_progress){.plan = &plan,
	    .part = part,
	    .before_ns = 30000000000,
	    .after_ns = 60000000000,
	    .total_ns = 10000000000};
}

static void test_bar(void)
{
	struct bench_progress p = progress_of("round 2/3");
	struct load_second row = row_of(4);
	char line[256];

	bench_progress_line(&p, &row, true, 200, line, sizeof(line));
	/* 35 of 100 s are over */
	CU_ASSERT_STRING_EQUAL(line,
	    "[#######.............] round 2/3 1.2x, 1:05 left  due 489/s  ok 480/s  "
	    "p99 31.2 ms  shed 9  error 0  late 0");
	bench_progress_line(&p, &row, false, 200, line, sizeof(line));
	CU_ASSERT_EQUAL(strncmp(line, "round 2/3 1.2x, 1:05 left", 25), 0);
}

/* On a narrow terminal, the phase, the time left, the rate and the p99 remain. */
static void test_narrow(void)
{
	struct bench_progress p = progress_of("sweep");
	struct load_second row = row_of(0);
	char line[256];

	bench_progress_line(&p, &row, true, 79, line, sizeof(line));
	CU_ASSERT_EQUAL(strlen(line), 79);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "p99 31.2 ms"));
}

static void test_ends(void)
{
	struct bench_progress p = progress_of("");
	struct load_second row = row_of(14); /* waiting for the last answers */
	char line[256];

	p.after_ns = -1;
	row.all.p99_ns = 0;
	bench_progress_line(&p, &row, true, 200, line, sizeof(line));
	CU_ASSERT_EQUAL(strncmp(line, "[####################] 1.2x, 0:00 left", 38), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "p99 -"));
	p.after_ns = 7200000000000;
	bench_progress_line(&p, &row, true, 200, line, sizeof(line));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "2:00:00 left"));
}

CUNIT_MAIN(
    "progress", {"a bar", test_bar}, {"a narrow terminal", test_narrow}, {"the ends", test_ends})
