/* SPDX-License-Identifier: MIT */
/* How the limit of a queue is divided between the queue and cells, and when events must come through
 * the queue. */
#include "event/queue.h"

#include "cunit_main.h"

static struct queue q;

/* The queue itself has `own` slots, and each cell `each`. */
static void divides(uint32_t limit, int cells, uint32_t own, uint32_t each)
{
	queue_set_limit(&q, limit);
	queue_set_cells(&q, cells, 0);
	CU_ASSERT_EQUAL(atomic_load(&q.own), own);
	CU_ASSERT_EQUAL(atomic_load(&q.cell_max), each);
	CU_ASSERT_EQUAL(atomic_load(&q.limit), limit);
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(queue_room_locked(&q), own);
	lock_release(&q.lock);
}

static void test_division(void)
{
	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 100, false, false), 0);
	CU_ASSERT_EQUAL(atomic_load(&q.own), 100);
	divides(100, 0, 100, 0);
	divides(100, 1, 50, 50);
	divides(100, 3, 52, 16);
	divides(7, 2, 5, 1);
	divides(3, 2, 3, 0); /* too few slots: the queue has them all */
	divides(1, 1, 1, 0);
	divides(100, 0, 100, 0);
	queue_set_cells(&q, 2, 0);
	queue_set_limit(&q, 40); /* a change of the limit keeps the cells */
	CU_ASSERT_EQUAL(atomic_load(&q.own), 20);
	CU_ASSERT_EQUAL(atomic_load(&q.cell_max), 10);
	queue_fini(&q);
}

static void test_by_door(void)
{
	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 100, false, false), 0);
	CU_ASSERT_FALSE(atomic_load(&q.by_door));
	queue_steer(&q, true, false);
	CU_ASSERT_TRUE(atomic_load(&q.by_door));
	queue_steer(&q, false, true);
	CU_ASSERT_TRUE(atomic_load(&q.by_door));
	queue_steer(&q, false, false);
	CU_ASSERT_FALSE(atomic_load(&q.by_door));
	queue_close(&q);
	CU_ASSERT_TRUE(atomic_load(&q.by_door));
	queue_steer(&q, false, false);
	CU_ASSERT_TRUE(atomic_load(&q.by_door));
	queue_fini(&q);
}

CUNIT_MAIN("queue cells", {"division", test_division}, {"by door", test_by_door})
