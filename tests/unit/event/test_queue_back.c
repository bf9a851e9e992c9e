/* SPDX-License-Identifier: MIT */
/* Events that are given back through a queue: who may take them, in what order, and what they do
 * not wait for. */
#include "event/queue.h"

#include "cunit_main.h"

#define N 600

static struct weir_event ev[N];
static struct weir_event *out[WEIR_BATCH_MAX];

/* Give back ev[first..last), with their numbers as keys. */
static void give_back(struct queue *q, int first, int last)
{
	struct weir_event *list = NULL;

	for (int i = first; i < last; i++) {
		ev[i] = (struct weir_event){.key = (uint64_t)i, .next = list};
		list = &ev[i];
	}
	queue_give_back(q, list);
}

static void test_all_once(void)
{
	struct queue q;
	bool seen[N] = {false};
	int part = -1, n, all = 0;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_EQUAL(queue_take_back(&q, 0, 1, out, &part), 0);
	give_back(&q, 0, N / 2);
	give_back(&q, N / 2, N);
	while ((n = queue_take_back(&q, 0, 1, out, &part)) > 0) {
		CU_ASSERT_EQUAL(part, 0);
		for (int i = 0; i < n; i++) {
			CU_ASSERT_FALSE(seen[out[i]->key]);
			seen[out[i]->key] = true;
		}
		all += n;
		CU_ASSERT_EQUAL(queue_due(&q, 0, 1, 1), all < N);
		CU_ASSERT_FALSE(queue_release(&q, part)); /* there are no leases */
	}
	CU_ASSERT_EQUAL(all, N);
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	queue_fini(&q);
}

/* Neither a pause nor the width matters, whatever the size of a batch. */
static void test_waits_for_nothing(void)
{
	struct queue q;
	int part;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	queue_set_width(&q, 1);
	queue_hold(&q, 0, 1);
	queue_steer(&q, true, true);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	give_back(&q, 0, 3);
	CU_ASSERT_TRUE(queue_due(&q, 0, 1, 100));
	CU_ASSERT_EQUAL(queue_ready(&q), 0); /* queue_pop would find nothing */
	CU_ASSERT_EQUAL(queue_take_back(&q, 0, 1, out, &part), 3);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	queue_fini(&q);
}

/* An event of a partition is given back to the thread that serves the partition, one call at a
 * time. */
static void test_partitions(void)
{
	struct queue q;
	int part;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 4, 64, false, true), 0);
	give_back(&q, 2, 3); /* partition 2 */
	CU_ASSERT_FALSE(queue_due(&q, 1, 2, 1));
	CU_ASSERT_EQUAL(queue_take_back(&q, 1, 2, out, &part), 0);
	CU_ASSERT_TRUE(queue_due(&q, 0, 2, 1));
	CU_ASSERT_EQUAL(queue_take_back(&q, 0, 2, out, &part), 1);
	CU_ASSERT_EQUAL(part, 2);
	CU_ASSERT_EQUAL(queue_unleased(&q), 3);
	give_back(&q, 6, 7);
	CU_ASSERT_FALSE(queue_due(&q, 0, 2, 1));
	CU_ASSERT_EQUAL(queue_take_back(&q, 0, 2, out, &part), 0);
	CU_ASSERT_TRUE(queue_release(&q, 2));
	CU_ASSERT_TRUE(queue_due(&q, 0, 2, 1));
	CU_ASSERT_EQUAL(queue_take_back(&q, 0, 2, out, &part), 1);
	CU_ASSERT_FALSE(queue_release(&q, 2));
	CU_ASSERT_EQUAL(queue_unleased(&q), 4);
	queue_fini(&q);
}

CUNIT_MAIN("queue back", {"all once", test_all_once}, {"waits for nothing", test_waits_for_nothing},
    {"partitions", test_partitions})
