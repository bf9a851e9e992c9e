/* SPDX-License-Identifier: MIT */
/* Scheduling policies: the table, and the rotation of `shared`. With a pool of threads, a policy
 * that always starts at the same stage looks like one that rotates, since both find the work.
 * Therefore the policy is called directly. */
#include "sched/policy.h"

#include <string.h>

#include "cunit_main.h"

/* The state of a policy as a handler holds it: initially zero. */
struct state {
	_Alignas(16) unsigned char bytes[SCHED_STATE_MAX];
};

static int pick(struct state *s, const uint32_t *length, int n)
{
	struct sched_view view[8] = {{0}};

	for (int i = 0; i < n; i++)
		view[i] = (struct sched_view){.length = length[i], .depth = i};
	return sched_shared.pick(s->bytes, view, n, 0);
}

static void test_table(void)
{
	CU_ASSERT_PTR_EQUAL(sched_policy_find("shared"), &sched_shared);
	CU_ASSERT_PTR_NULL(sched_policy_find("share"));
	CU_ASSERT_PTR_NULL(sched_policy_find(""));
	CU_ASSERT_PTR_EQUAL(sched_policy_at(0), &sched_shared);
	CU_ASSERT_PTR_NULL(sched_policy_at(1));
	CU_ASSERT_PTR_NULL(sched_policy_at(-1));
}

/* If all have work, each is visited once before any is visited again. */
static void test_goes_round(void)
{
	static const uint32_t busy[3] = {9, 1, 100};
	struct state s = {{0}};

	for (int i = 0; i < 9; i++)
		CU_ASSERT_EQUAL(pick(&s, busy, 3), i % 3);
}

static void test_skips_what_is_empty(void)
{
	static const uint32_t gaps[5] = {0, 1, 0, 1, 0}, none[5] = {0}, last[5] = {0, 0, 0, 0, 1};
	struct state s = {{0}};

	CU_ASSERT_EQUAL(pick(&s, gaps, 5), 1);
	CU_ASSERT_EQUAL(pick(&s, gaps, 5), 3);
	CU_ASSERT_EQUAL(pick(&s, gaps, 5), 1);
	CU_ASSERT_EQUAL(pick(&s, none, 5), -1);
	CU_ASSERT_EQUAL(pick(&s, gaps, 5), 3); /* finding nothing does not advance the rotation */
	CU_ASSERT_EQUAL(pick(&s, last, 5), 4);
	CU_ASSERT_EQUAL(pick(&s, gaps, 5), 1); /* the rotation wraps to the first */
}

static void test_one_stage(void)
{
	static const uint32_t one[1] = {1}, none[1] = {0};
	struct state s = {{0}};

	CU_ASSERT_EQUAL(pick(&s, one, 1), 0);
	CU_ASSERT_EQUAL(pick(&s, one, 1), 0);
	CU_ASSERT_EQUAL(pick(&s, none, 1), -1);
}

CUNIT_MAIN("scheduling policy", {"the table", test_table}, {"shared goes round", test_goes_round},
    {"shared skips empty stages", test_skips_what_is_empty},
    {"shared with one stage", test_one_stage})
