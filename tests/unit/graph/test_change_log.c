/* SPDX-License-Identifier: MIT */
/* The ring of operator changes (struct change_log): which change is undone next, and what happens
 * to the memory of changes that cannot be undone. */
#include "graph/change_log.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static int forgotten; /* number of `before` values that the ring has freed */

static void forget(void *before)
{
	forgotten += before != NULL;
	free(before);
}

static struct change_log *empty(void)
{
	struct change_log *a = calloc(1, sizeof(*a));

	CU_ASSERT_PTR_NOT_NULL_FATAL(a);
	change_log_init(a, forget);
	forgotten = 0;
	return a;
}

static uint64_t add(struct change_log *a, const char *target)
{
	struct weir_change act = {.actor = "test", .what = "set"};

	strcpy(act.target, target);
	return change_log_add(a, act, malloc(1));
}

static uint64_t last_id(struct change_log *a)
{
	struct weir_change act;
	void *before = NULL;

	if (!change_log_last(a, &act, &before))
		return 0;
	CU_ASSERT_PTR_EQUAL(before, change_log_before(a, act.id));
	return act.id;
}

static void finish(struct change_log *a)
{
	change_log_fini(a);
	free(a);
}

/* Undo skips a change that is set aside. Its `before` value is freed at once and only once. */
static void test_set_aside(void)
{
	struct change_log *a = empty();
	uint64_t first = add(a, "a"), second = add(a, "b");

	CU_ASSERT_EQUAL(last_id(a), second);
	change_log_set_aside(a, second);
	CU_ASSERT_EQUAL(forgotten, 1);
	CU_ASSERT_PTR_NULL(change_log_before(a, second));
	CU_ASSERT_EQUAL(last_id(a), first);
	change_log_set_aside(a, second);
	CU_ASSERT_EQUAL(forgotten, 1);
	change_log_undone(a, first);
	CU_ASSERT_EQUAL(last_id(a), 0);
	CU_ASSERT_EQUAL(change_log_total(a), 2);
	finish(a);
	CU_ASSERT_EQUAL(forgotten, 2);
}

/* An id that has left the ring does not affect the change that uses its slot now. */
static void test_left_the_ring(void)
{
	struct change_log *a = empty();
	uint64_t first = add(a, "first"), last = 0;
	struct weir_change newest;

	for (int i = 0; i < CHANGE_LOG_SIZE; i++)
		last = add(a, "later");
	CU_ASSERT_EQUAL(last % CHANGE_LOG_SIZE, first % CHANGE_LOG_SIZE);
	CU_ASSERT_EQUAL(forgotten, 1);
	change_log_undone(a, first);
	change_log_set_aside(a, first);
	CU_ASSERT_EQUAL(forgotten, 1);
	CU_ASSERT_PTR_NULL(change_log_before(a, first));
	CU_ASSERT_EQUAL(last_id(a), last);
	CU_ASSERT_EQUAL(change_log_read(a, &newest, 1), 1);
	CU_ASSERT_EQUAL(newest.id, last);
	CU_ASSERT_FALSE(newest.undone);
	finish(a);
	CU_ASSERT_EQUAL(forgotten, CHANGE_LOG_SIZE + 1);
}

static void test_empty(void)
{
	struct change_log *a = empty();
	struct weir_change act;

	CU_ASSERT_EQUAL(last_id(a), 0);
	CU_ASSERT_PTR_NULL(change_log_before(a, 0));
	CU_ASSERT_EQUAL(change_log_read(a, &act, 1), 0);
	CU_ASSERT_EQUAL(change_log_total(a), 0);
	finish(a);
}

CUNIT_MAIN("acts_ring", {"empty", test_empty}, {"set aside", test_set_aside},
    {"left the ring", test_left_the_ring})
