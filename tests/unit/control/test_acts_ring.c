/* SPDX-License-Identifier: MIT */
/* The ring of operator changes (struct acts): which change is undone next, and what happens to the
 * memory of changes that cannot be undone. */
#include "operate/acts.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static int forgotten; /* number of `before` values that the ring has freed */

static void forget(void *before)
{
	forgotten += before != NULL;
	free(before);
}

static struct acts *empty(void)
{
	struct acts *a = calloc(1, sizeof(*a));

	CU_ASSERT_PTR_NOT_NULL_FATAL(a);
	acts_init(a, forget);
	forgotten = 0;
	return a;
}

static uint64_t add(struct acts *a, const char *target)
{
	struct weir_act act = {.actor = "test", .what = "set"};

	strcpy(act.target, target);
	return acts_add(a, act, malloc(1));
}

static uint64_t last_id(struct acts *a)
{
	struct weir_act act;
	void *before = NULL;

	if (!acts_last(a, &act, &before))
		return 0;
	CU_ASSERT_PTR_EQUAL(before, acts_before(a, act.id));
	return act.id;
}

static void finish(struct acts *a)
{
	acts_fini(a);
	free(a);
}

/* Undo skips a change that is set aside. Its `before` value is freed at once and only once. */
static void test_set_aside(void)
{
	struct acts *a = empty();
	uint64_t first = add(a, "a"), second = add(a, "b");

	CU_ASSERT_EQUAL(last_id(a), second);
	acts_set_aside(a, second);
	CU_ASSERT_EQUAL(forgotten, 1);
	CU_ASSERT_PTR_NULL(acts_before(a, second));
	CU_ASSERT_EQUAL(last_id(a), first);
	acts_set_aside(a, second);
	CU_ASSERT_EQUAL(forgotten, 1);
	acts_undone(a, first);
	CU_ASSERT_EQUAL(last_id(a), 0);
	CU_ASSERT_EQUAL(acts_total(a), 2);
	finish(a);
	CU_ASSERT_EQUAL(forgotten, 2);
}

/* An id that has left the ring does not affect the change that uses its slot now. */
static void test_left_the_ring(void)
{
	struct acts *a = empty();
	uint64_t first = add(a, "first"), last = 0;
	struct weir_act newest;

	for (int i = 0; i < ACTS_SIZE; i++)
		last = add(a, "later");
	CU_ASSERT_EQUAL(last % ACTS_SIZE, first % ACTS_SIZE);
	CU_ASSERT_EQUAL(forgotten, 1);
	acts_undone(a, first);
	acts_set_aside(a, first);
	CU_ASSERT_EQUAL(forgotten, 1);
	CU_ASSERT_PTR_NULL(acts_before(a, first));
	CU_ASSERT_EQUAL(last_id(a), last);
	CU_ASSERT_EQUAL(acts_read(a, &newest, 1), 1);
	CU_ASSERT_EQUAL(newest.id, last);
	CU_ASSERT_FALSE(newest.undone);
	finish(a);
	CU_ASSERT_EQUAL(forgotten, ACTS_SIZE + 1);
}

static void test_empty(void)
{
	struct acts *a = empty();
	struct weir_act act;

	CU_ASSERT_EQUAL(last_id(a), 0);
	CU_ASSERT_PTR_NULL(acts_before(a, 0));
	CU_ASSERT_EQUAL(acts_read(a, &act, 1), 0);
	CU_ASSERT_EQUAL(acts_total(a), 0);
	finish(a);
}

CUNIT_MAIN("acts_ring", {"empty", test_empty}, {"set aside", test_set_aside},
    {"left the ring", test_left_the_ring})
