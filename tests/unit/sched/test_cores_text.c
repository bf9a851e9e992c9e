/* SPDX-License-Identifier: MIT */
/* `cores:` as text. */
#include <stdio.h>

#include "base/task.h"
#include "sched/cores.h"

#include "cunit_main.h"

static int cpu[POOL_THREADS_MAX];
static bool listed;

static void test_numbers(void)
{
	CU_ASSERT_EQUAL(cores_parse("auto", cpu, &listed), task_cores());
	CU_ASSERT_FALSE(listed);
	CU_ASSERT_EQUAL(cores_parse("3", cpu, &listed), 3);
	CU_ASSERT_FALSE(listed);
}

static void test_ranges(void)
{
	int max;

	CU_ASSERT_EQUAL(cores_parse("2..8", cpu, &listed), 8);
	CU_ASSERT_FALSE(listed);
	CU_ASSERT_EQUAL(cores_range("2..8", &max), 2);
	CU_ASSERT_EQUAL(max, 8);
	CU_ASSERT_EQUAL(cores_range("5", &max), 5);
	CU_ASSERT_EQUAL(max, 5);
	CU_ASSERT_EQUAL(cores_range("1..auto", &max), 1);
	CU_ASSERT_EQUAL(max, task_cores());
	CU_ASSERT_EQUAL(cores_parse("8..2", cpu, &listed), -1);
	CU_ASSERT_EQUAL(cores_range("8..2", &max), 8); /* for a message */
	CU_ASSERT_EQUAL(max, 2);
	CU_ASSERT_EQUAL(cores_range("8..", &max), -1);
	CU_ASSERT_EQUAL(cores_range("..8", &max), -1);
	CU_ASSERT_EQUAL(cores_range("1..2..3", &max), -1);
	CU_ASSERT_EQUAL(cores_range("0..3", &max), -1);
	CU_ASSERT_EQUAL(cores_range("1..0", &max), -1);
}

static void test_lists(void)
{
	static const int want[] = {0, 1, 2, 3, 6, 8};

	CU_ASSERT_EQUAL_FATAL(cores_parse("0-3,6,8-8", cpu, &listed), 6);
	CU_ASSERT_TRUE(listed);
	for (int i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(cpu[i], want[i]);
	CU_ASSERT_EQUAL(cores_parse("7-7", cpu, &listed), 1);
	CU_ASSERT_EQUAL(cpu[0], 7);
}

static void test_nonsense(void)
{
	static const char *const wrong[] = {"", "0", "-1", "x", "2x", "1,", ",1", "1-", "3-1",
	    "1,1", "0-3,2", "1;2", "99999", "0-99999", "0-1023,1024", " 1", "auto,1"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_TRUE(cores_parse(wrong[i], cpu, &listed) < 0);
		if (cores_parse(wrong[i], cpu, &listed) >= 0)
			fprintf(stderr, "  accepted: '%s'\n", wrong[i]);
	}
}

CUNIT_MAIN("cores text", {"numbers", test_numbers}, {"ranges", test_ranges}, {"lists", test_lists},
    {"nonsense", test_nonsense})
