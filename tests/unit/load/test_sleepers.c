/* SPDX-License-Identifier: MIT */
/* Many sleeping threads: all of them work, and the knee is found. */
#include "cunit_main.h"

#include <string.h>

#include "load/sleepers.h"

static void each_thread_does_its_tasks(void)
{
	struct sleepers s;
	struct weir_err err = {0};

	CU_ASSERT_FATAL(sleepers_run(20, 300000000, &s, &err) == 0);
	CU_ASSERT(s.threads == 20);
	CU_ASSERT(s.tasks_per_s > 0);
	CU_ASSERT(s.tasks_per_s <= s.ideal_per_s * 1.01); /* no sleep is shorter than requested */
	CU_ASSERT_DOUBLE_EQUAL(s.ideal_per_s, 400, 1e-9);
}

static struct sleepers with(int threads, double tasks_per_s)
{
	return (struct sleepers){.threads = threads, .tasks_per_s = tasks_per_s};
}

static void the_knee(void)
{
	struct sleepers rising[] = {with(1, 10), with(2, 20), with(4, 40)};
	struct sleepers falling[] = {with(1, 10), with(2, 20), with(4, 21.5), with(8, 15)};
	struct sleepers flat[] = {with(1, 10), with(2, 20), with(4, 20.5), with(8, 20.9)};

	CU_ASSERT(sleepers_limit(rising, 3) == 4);
	CU_ASSERT(sleepers_limit(falling, 4) == 4);
	CU_ASSERT(sleepers_limit(flat, 4) == 2); /* 5 % more does not count as more */
	CU_ASSERT(sleepers_limit(rising, 1) == 1);
}

CUNIT_MAIN(
    "sleepers", {"each thread does its tasks", each_thread_does_its_tasks}, {"the knee", the_knee})
