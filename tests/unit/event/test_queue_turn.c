/* SPDX-License-Identifier: MIT */
/* The stage queue: which partition and which class come next, and when a thread is due. (Order and
 * limit: test_queue.c.) */
#include "event/queue.h"

#include "cunit_main.h"

#define N 64

static struct weir_event ev[N];

static void push_one(struct queue *q, int i, int class_id, uint64_t key)
{
	struct weir_event *e = &ev[i];

	*e =
	    (struct weir_event){.class_id = (uint8_t)class_id, .key = key, .trace_id = (uint64_t)i};
	lock_take(&q->lock);
	CU_ASSERT_EQUAL(queue_push_locked(q, &e, 1), 1);
	lock_release(&q->lock);
}

static struct queue_take take_of(int max)
{
	return (struct queue_take){.n_ranks = 1, .max = max, .sharers = 1};
}

/* ---- leases ---- */

/* One event is enough for a thread that needs one, but not for a thread that needs two. */
static void test_due_when_exactly_enough_waits(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(64);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, true), 0);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	push_one(&q, 0, 0, 0);
	CU_ASSERT_TRUE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 2));
	push_one(&q, 1, 0, 0);
	CU_ASSERT_TRUE(queue_due(&q, 0, 1, 2));
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 2);
	push_one(&q, 2, 0, 0);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));   /* leased */
	CU_ASSERT_TRUE(queue_release(&q, t.part)); /* one more event waits */
	CU_ASSERT_TRUE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
	CU_ASSERT_FALSE(queue_release(&q, t.part));
	queue_fini(&q);
}

static void test_due_without_leases(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(64);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	push_one(&q, 0, 0, 0);
	CU_ASSERT_TRUE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 2));
	queue_steer(&q, true, false);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	queue_steer(&q, false, false);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
	queue_fini(&q);
}

/* A thread is due only for the partitions of its rank: of five, ranks 0 and 1 of two have 0, 2, 4
 * and 1, 3. */
static void test_due_by_rank(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 5, 64, false, true), 0);
	for (int p = 0; p < 5; p++) {
		struct queue_take t = take_of(64);
		push_one(&q, p, 0, (uint64_t)p);
		CU_ASSERT_EQUAL(queue_due(&q, 0, 2, 1), p % 2 == 0);
		CU_ASSERT_EQUAL(queue_due(&q, 1, 2, 1), p % 2 == 1);
		t.n_ranks = 2;
		t.rank = 1 - p % 2;
		CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
		t.rank = p % 2;
		CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
		CU_ASSERT_EQUAL(t.part, p);
		queue_release(&q, p);
	}
	queue_fini(&q);
}

/* ---- which partition is next ---- */

/* If each of four partitions always has work, the one that was served longest ago is next. */
static void test_longest_unserved_partition_first(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(1);
	int served[4] = {0};

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 4, 64, false, true), 0);
	for (int i = 0; i < 40; i++)
		push_one(&q, i, 0, (uint64_t)(i % 4));
	for (int round = 0; round < 40; round++) {
		CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
		served[t.part]++;
		queue_release(&q, t.part);
		for (int p = 0; p < 4; p++)
			CU_ASSERT_EQUAL(served[p], round / 4 + (p <= round % 4));
	}
	queue_fini(&q);
}

/* ---- cohorts ---- */

/* Two classes have events of one key: a cohort contains only those of the higher class, even if
 * both would fit. */
static void test_cohort_is_of_one_class(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(64);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 2, 1, 64, true, false), 0);
	for (int i = 0; i < 8; i++)
		push_one(&q, i, i % 2, 7);
	t.by_key = true;
	for (int c = 0; c < 2; c++) {
		CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 4);
		for (int i = 0; i < 4; i++) {
			CU_ASSERT_EQUAL(out[i]->class_id, c);
			CU_ASSERT_EQUAL(out[i]->trace_id, (uint64_t)(2 * i + c));
		}
	}
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	queue_fini(&q);
}

CUNIT_MAIN("queue turn", {"due when exactly enough waits", test_due_when_exactly_enough_waits},
    {"due without leases", test_due_without_leases}, {"due by rank", test_due_by_rank},
    {"the longest unserved partition first", test_longest_unserved_partition_first},
    {"a cohort is of one class", test_cohort_is_of_one_class})
