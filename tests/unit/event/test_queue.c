/* SPDX-License-Identifier: MIT */
/* The stage queue: order, classes, limit, partitions with leases, cohorts by key. Single-threaded;
 * for concurrent use see tests/torture/torture_queue.c. */
#include "event/queue.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define N 600

static struct weir_event ev[N];

static struct weir_event *make(int i, int class_id, uint64_t key, int64_t queued_ns)
{
	ev[i] = (struct weir_event){.class_id = (uint8_t)class_id,
	    .key = key,
	    .queued_ns = queued_ns,
	    .trace_id = (uint64_t)i};
	return &ev[i];
}

static int push(struct queue *q, struct weir_event **list, int n)
{
	lock_take(&q->lock);
	int room = (int)queue_room_locked(q);
	int done = queue_push_locked(q, list, n < room ? n : room);
	lock_release(&q->lock);
	return done;
}

static struct queue_take take_of(int max)
{
	return (struct queue_take){.rank = 0, .n_ranks = 1, .max = max, .sharers = 1};
}

static int pop(struct queue *q, int max, struct weir_event **out)
{
	struct queue_take t = take_of(max);

	return queue_pop(q, &t, out);
}

static void drain(struct queue *q)
{
	struct weir_event *out[WEIR_BATCH_MAX];

	for (int p = 0; p < q->n_parts; p++) {
		struct queue_take t = take_of(WEIR_BATCH_MAX);
		t.rank = p;
		t.n_ranks = q->n_parts;
		while (queue_pop(q, &t, out) > 0)
			queue_release(q, t.part);
	}
	queue_fini(q);
}

static void test_fifo_over_ring_end(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];
	int in = 0, got = 0;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	for (int round = 0; round < 40; round++) {
		struct weir_event *run[13];
		for (int i = 0; i < 13; i++)
			run[i] = make(in++ % N, 0, 0, 0);
		for (int i = 0; i < 13; i++)
			run[i]->trace_id = (uint64_t)(in - 13 + i);
		CU_ASSERT_EQUAL(push(&q, run, 13), 13);
		int n = pop(&q, 13, out);
		CU_ASSERT_EQUAL(n, 13);
		for (int i = 0; i < n; i++)
			CU_ASSERT_EQUAL(out[i]->trace_id, (uint64_t)got++);
	}
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	queue_fini(&q);
}

static void test_bound_and_length(void)
{
	struct queue q;
	struct weir_event *run[100], *out[WEIR_BATCH_MAX];

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 2, 1, 70, false, false), 0);
	for (int i = 0; i < 100; i++)
		run[i] = make(i, i % 2, 0, 0);
	CU_ASSERT_EQUAL(push(&q, run, 100), 70);
	CU_ASSERT_EQUAL(queue_length(&q), 70);
	CU_ASSERT_EQUAL(push(&q, run + 70, 1), 0);
	CU_ASSERT_EQUAL(pop(&q, 20, out), 20);
	CU_ASSERT_EQUAL(queue_length(&q), 50);
	queue_set_limit(&q, 40);
	CU_ASSERT_EQUAL(push(&q, run + 70, 1), 0);
	queue_set_limit(&q, 60);
	CU_ASSERT_EQUAL(push(&q, run + 70, 20), 10);
	queue_close(&q);
	CU_ASSERT_EQUAL(pop(&q, 1, out), 1);
	CU_ASSERT_EQUAL(push(&q, run + 90, 1), 0);
	drain(&q);
}

static void test_classes_by_priority(void)
{
	struct queue q;
	struct weir_event *run[9], *out[WEIR_BATCH_MAX];
	const int want_class[9] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
	uint64_t n[WEIR_CLASSES_MAX];

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 3, 1, 64, false, false), 0);
	for (int i = 0; i < 9; i++)
		run[i] = make(i, 2 - i % 3, 0, 100 + i);
	push(&q, run, 9);
	CU_ASSERT_EQUAL(queue_oldest_ns(&q, n), 100);
	CU_ASSERT_EQUAL(n[0] + n[1] + n[2], 9);
	CU_ASSERT_EQUAL(pop(&q, 9, out), 9);
	for (int i = 0; i < 9; i++) {
		CU_ASSERT_EQUAL(out[i]->class_id, want_class[i]);
		if (i % 3)
			CU_ASSERT(out[i]->trace_id > out[i - 1]->trace_id);
	}
	CU_ASSERT_EQUAL(queue_oldest_ns(&q, NULL), 0);
	queue_fini(&q);
}

/* With `fifo`, classes share one order, that of their stamps; events of one stamp stay together. */
static void test_oldest_first_whatever_the_class(void)
{
	struct queue q;
	struct weir_event *run[9], *out[WEIR_BATCH_MAX];

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 3, 1, 64, false, false), 0);
	q.fifo = true;
	for (int i = 0; i < 9; i++)
		run[i] = make(i, 2 - i % 3, 0, 100 + i / 3 * 10);
	push(&q, run, 9);
	CU_ASSERT_EQUAL(pop(&q, 4, out), 4);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(out[i]->queued_ns, i < 3 ? 100 : 110);
	CU_ASSERT_EQUAL(pop(&q, 9, out), 5);
	for (int i = 1; i < 5; i++)
		CU_ASSERT(out[i]->queued_ns >= out[i - 1]->queued_ns);
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	queue_fini(&q);
}

static void test_share_of_many_threads(void)
{
	struct queue q;
	struct weir_event *run[10], *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(64);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	for (int i = 0; i < 10; i++)
		run[i] = make(i, 0, 0, 0);
	push(&q, run, 10);
	t.sharers = 4;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 3); /* ceil(10 / 4) */
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 2); /* ceil(7 / 4) */
	drain(&q);
}

static void test_exclusive_lease(void)
{
	struct queue q;
	struct weir_event *run[4], *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(2);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, true), 0);
	for (int i = 0; i < 4; i++)
		run[i] = make(i, 0, 0, 0);
	push(&q, run, 4);
	CU_ASSERT_TRUE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_EQUAL(queue_unleased(&q), 1);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 2);
	CU_ASSERT_FALSE(queue_due(&q, 0, 1, 1));
	CU_ASSERT_EQUAL(queue_unleased(&q), 0);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	CU_ASSERT_TRUE(queue_release(&q, t.part));
	CU_ASSERT_EQUAL(queue_unleased(&q), 1);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 2);
	CU_ASSERT_FALSE(queue_release(&q, t.part));
	queue_fini(&q);
}

static void test_partitions_keep_keys_apart(void)
{
	struct queue q;
	struct weir_event *run[60], *out[WEIR_BATCH_MAX];
	int seen = 0;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 4, 64, false, true), 0);
	for (int i = 0; i < 60; i++)
		run[i] = make(i, 0, (uint64_t)(i % 7), 0);
	push(&q, run, 60);
	for (int rank = 0; rank < 2; rank++) {
		uint64_t last[7] = {0};
		struct queue_take t = take_of(64);
		t.rank = rank;
		t.n_ranks = 2;
		int n;
		while ((n = queue_pop(&q, &t, out)) > 0) {
			CU_ASSERT_EQUAL(t.part % 2, rank);
			for (int i = 0; i < n; i++) {
				CU_ASSERT_EQUAL((int)(out[i]->key % 4), t.part);
				CU_ASSERT(out[i]->trace_id + 1 > last[out[i]->key]);
				last[out[i]->key] = out[i]->trace_id + 1;
			}
			seen += n;
			queue_release(&q, t.part);
		}
	}
	CU_ASSERT_EQUAL(seen, 60);
	queue_fini(&q);
}

static void test_cohort_largest_run(void)
{
	struct queue q;
	struct weir_event *run[12], *out[WEIR_BATCH_MAX];
	const uint64_t keys[12] = {1, 2, 2, 3, 2, 1, 2, 3, 3, 2, 1, 4};
	struct queue_take t = take_of(64);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, true, false), 0);
	for (int i = 0; i < 12; i++)
		run[i] = make(i, 0, keys[i], 0);
	push(&q, run, 12);
	t.by_key = true;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 5);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(out[i]->key, 2);
		if (i)
			CU_ASSERT(out[i]->trace_id > out[i - 1]->trace_id);
	}
	/* The rest kept its order: 1 3 1 3 3 1 4. */
	const int rest[7] = {0, 3, 5, 7, 8, 10, 11};
	t.by_key = false;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 7);
	for (int i = 0; i < 7; i++)
		CU_ASSERT_EQUAL(out[i]->trace_id, (uint64_t)rest[i]);
	queue_fini(&q);
}

static void test_cohort_rare_key_is_served(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX], *one;
	struct queue_take t = take_of(4);
	int next = 1, rounds = 0;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 512, true, false), 0);
	one = make(0, 0, 77, 0);
	push(&q, &one, 1);
	t.by_key = true;
	for (; rounds < 100; rounds++) {
		for (int i = 0; i < 4; i++) {
			one = make(next++ % N ? next % N : 1, 0, 5, 0);
			push(&q, &one, 1);
		}
		CU_ASSERT_FATAL(queue_pop(&q, &t, out) > 0);
		if (out[0]->key == 77)
			break;
	}
	CU_ASSERT(rounds < 20);
	drain(&q);
}

static void test_linger(void)
{
	struct queue q;
	struct weir_event *run[8], *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(4);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	for (int i = 0; i < 8; i++)
		run[i] = make(i, 0, 0, 1000);
	t.linger_ns = 500;
	t.now_ns = 1100;
	push(&q, run, 3);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	CU_ASSERT_EQUAL(t.ready_ns, 1500);
	push(&q, run + 3, 1);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 4); /* full before its time */
	push(&q, run + 4, 2);
	t.now_ns = 1500;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 2); /* t.ready_ns has passed */
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	CU_ASSERT_EQUAL(t.ready_ns, INT64_MAX);
	queue_fini(&q);
}

/* Threads that share a queue do not divide what has been waited for. */
static void test_linger_is_not_shared(void)
{
	struct queue q;
	struct weir_event *run[15], *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(4);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 64, false, false), 0);
	for (int i = 0; i < 15; i++)
		run[i] = make(i, 0, 0, 1000);
	t.sharers = 4;
	t.linger_ns = 500;
	t.now_ns = 1100;
	push(&q, run, 4);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 4); /* full */
	push(&q, run + 4, 7);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 4);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0); /* the rest waits for a full one of its own */
	t.now_ns = 1500;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 3); /* due */
	push(&q, run + 11, 4);
	t.linger_ns = 0;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
	drain(&q);
}

/* The oldest events are shown first, whatever their partition and class. */
static void test_peek(void)
{
	static const struct weir_event_type type = {.name = "t"};
	struct queue q;
	struct weir_event *run[6];
	struct weir_queued shown[8];

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 2, 3, 64, false, true), 0);
	CU_ASSERT_EQUAL(queue_peek(&q, 100, shown, 8), 0);
	for (int i = 0; i < 6; i++) {
		run[i] = make(i, i % 2, (uint64_t)i % 3, 60 - 10 * i);
		run[i]->type = &type;
		run[i]->deadline_ns = WEIR_NO_DEADLINE;
	}
	CU_ASSERT_EQUAL(push(&q, run, 6), 6);
	CU_ASSERT_EQUAL_FATAL(queue_peek(&q, 100, shown, 8), 6);
	for (int i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(shown[i].age_ns, 90 - 10 * i);
		CU_ASSERT_EQUAL(shown[i].class_id, (5 - i) % 2);
	}
	CU_ASSERT_EQUAL(queue_peek(&q, 100, shown, 2), 2);
	CU_ASSERT_EQUAL(shown[1].age_ns, 80);
	drain(&q);
}

/* A batch that was taken says nothing of the partitions that wait for a fuller one. */
static void test_ready_time_is_of_an_empty_take(void)
{
	struct queue q;
	struct weir_event *run[4], *out[WEIR_BATCH_MAX];
	struct queue_take t = take_of(4);

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 2, 64, false, true), 0);
	run[0] = make(0, 0, 0, 100); /* partition 0 has one event, and waits for more */
	for (int i = 1; i < 4; i++)
		run[i] = make(i, 0, 1, 0); /* partition 1 has waited long enough */
	CU_ASSERT_EQUAL(push(&q, run, 4), 4);
	t.linger_ns = 50;
	t.now_ns = 110;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 3);
	CU_ASSERT_EQUAL(t.ready_ns, INT64_MAX);
	drain(&q);
}

CUNIT_MAIN("queue", {"peek: oldest first", test_peek},
    {"a taken batch has no ready time", test_ready_time_is_of_an_empty_take},
    {"first in first out over the end of the ring", test_fifo_over_ring_end},
    {"never longer than the limit", test_bound_and_length},
    {"highest class first, in order within", test_classes_by_priority},
    {"fifo: oldest first, whatever the class", test_oldest_first_whatever_the_class},
    {"a batch is a fair share", test_share_of_many_threads},
    {"exclusive: one batch at a time", test_exclusive_lease},
    {"partitioned: a key stays in its partition, in order", test_partitions_keep_keys_apart},
    {"cohort: the largest run of one key", test_cohort_largest_run},
    {"cohort: a rare key is not starved", test_cohort_rare_key_is_served},
    {"linger: full or due", test_linger},
    {"linger: a cohort is not divided", test_linger_is_not_shared})
