/* SPDX-License-Identifier: MIT */
/* The memory steps of connections: the exact values where they begin and end. */
#include "http/server/memory.h"

#include "cunit_main.h"

static void test_rising(void)
{
	static const int at[] = {0, 849, 850, 919, 920, 949, 950, 979, 980, 5000};
	static const int step[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4};

	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(memory_step_at(MEMORY_PLENTY, at[i], 1000), step[i]);
}

/* A step ends only 5 % below the value at which it begins. */
static void test_falling(void)
{
	static const int at[] = {980, 931, 930, 929, 900, 899, 871, 870, 869, 801, 800, 799, 0};
	static const int step[] = {4, 4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0};
	int now = MEMORY_DEAF;

	for (int i = 0; i < 13; i++) {
		now = memory_step_at(now, at[i], 1000);
		CU_ASSERT_EQUAL(now, step[i]);
	}
}

/* After a step has ended, it begins again at the same value as before. */
static void test_again(void)
{
	int now = memory_step_at(MEMORY_HURRY, 799, 1000);

	CU_ASSERT_EQUAL(now, MEMORY_PLENTY);
	CU_ASSERT_EQUAL(memory_step_at(now, 849, 1000), MEMORY_PLENTY);
	CU_ASSERT_EQUAL(memory_step_at(now, 1000, 1000), MEMORY_DEAF);
	CU_ASSERT_EQUAL(memory_step_at(MEMORY_DEAF, -5, 1000), MEMORY_PLENTY);
}

CUNIT_MAIN("memory", {"rising", test_rising}, {"falling", test_falling}, {"again", test_again})
