/* SPDX-License-Identifier: MIT */
/* Queues with `discipline: shortest`: classes, starvation, lingering, partitions, views, bounds. The
 * order in a class is tested by test_bins.c. */
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"
#include "event/bins.h"
#include "event/queue.h"

#define N 600

static const struct weir_event_type type = {.name = "t"};
static struct weir_event ev[N];

static void push_event(struct queue *q, struct weir_event *one, uint64_t cost)
{
	one->type = &type;
	one->deadline_ns = WEIR_NO_DEADLINE;
	bin_note(one, bin_of(cost));
	lock_take(&q->lock);
	CU_ASSERT_EQUAL(queue_push_locked(q, &one, 1), 1);
	lock_release(&q->lock);
}

/* Event `i` of a class, with `cost` as its work. */
static void push(struct queue *q, int i, int class_id, uint64_t cost, int64_t queued_ns)
{
	ev[i] = (struct weir_event){
	    .class_id = (uint8_t)class_id, .key = (uint64_t)i, .queued_ns = queued_ns};
	push_event(q, &ev[i], cost);
}

static void push_key(struct queue *q, int i, int class_id, uint64_t key, uint64_t cost)
{
	ev[i] = (struct weir_event){.class_id = (uint8_t)class_id, .key = key, .queued_ns = 1};
	push_event(q, &ev[i], cost);
}

static void begin(struct queue *q, int n_classes, int n_parts, int64_t starve_ns, bool ordered)
{
	CU_ASSERT_EQUAL_FATAL(queue_init(q, n_classes, n_parts, 64, true, n_parts > 1), 0);
	CU_ASSERT_EQUAL_FATAL(queue_set_shortest(q, starve_ns, ordered), 0);
}

static int pop(struct queue *q, int max, int64_t now_ns, bool by_key, struct weir_event **out)
{
	struct queue_take t = {
	    .n_ranks = 1, .max = max, .sharers = 1, .now_ns = now_ns, .by_key = by_key};

	return queue_pop(q, &t, out);
}

static void expect(struct queue *q, int64_t now_ns, int want)
{
	struct weir_event *out[1];

	CU_ASSERT_EQUAL_FATAL(pop(q, 1, now_ns, false, out), 1);
	CU_ASSERT_EQUAL((int)(out[0] - ev), want);
}

/* The highest class first, and in it the least work; starved events pass only their own class. */
static void test_classes(void)
{
	struct queue q;

	begin(&q, 2, 1, 100, false);
	push(&q, 0, 1, 1, 0);
	push(&q, 1, 1, 900, 0);
	push(&q, 2, 1, 2, 50);
	push(&q, 3, 0, 1000, 40);
	push(&q, 4, 0, 10, 50);
	expect(&q, 60, 4);
	expect(&q, 60, 3);
	expect(&q, 60, 0);
	expect(&q, 101, 1); /* waited 101 */
	expect(&q, 101, 2);
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	push(&q, 0, 0, 900, 0);
	push(&q, 1, 0, 1, 0);
	expect(&q, 100, 1); /* exactly 100: not longer */
	expect(&q, 100, 0);
	queue_fini(&q);
}

/* Without a bound, age does not matter. */
static void test_never(void)
{
	struct queue q;

	begin(&q, 1, 1, 0, false);
	push(&q, 0, 0, 900, 0);
	push(&q, 1, 0, 1, 1);
	expect(&q, INT64_MAX, 1);
	expect(&q, INT64_MAX, 0);
	queue_fini(&q);
}

/* The view has the events in the order in which they leave. */
static void test_peek(void)
{
	struct queue q;
	struct weir_queued shown[QUEUE_PEEK_MAX];
	struct weir_event *out[1];

	begin(&q, 3, 1, 300, false);
	srand(7);
	for (int i = 0; i < 60; i++)
		push(&q, i, rand() % 3, (uint64_t)(rand() % 1000), 10 * i);
	CU_ASSERT_EQUAL(queue_peek(&q, 600, shown, 0), 0);
	CU_ASSERT_EQUAL_FATAL(queue_peek(&q, 600, shown, QUEUE_PEEK_MAX), 60);
	for (int i = 0; i < 60; i++) {
		CU_ASSERT_EQUAL_FATAL(pop(&q, 1, 600, false, out), 1);
		CU_ASSERT_EQUAL(shown[i].age_ns, 600 - out[0]->queued_ns);
		CU_ASSERT_EQUAL(shown[i].class_id, out[0]->class_id);
	}
	queue_fini(&q);
}

/* A batch lingers until its oldest event is due, not the one that leaves first. */
static void test_linger(void)
{
	struct queue q;
	struct weir_event *out[8];
	struct queue_take t = {
	    .n_ranks = 1, .max = 8, .sharers = 1, .linger_ns = 100, .now_ns = 120};

	begin(&q, 1, 1, 1000, false);
	q.dated = true;
	push(&q, 0, 0, 900, 30);
	push(&q, 1, 0, 1, 80);
	CU_ASSERT_EQUAL(atomic_load(&q.oldest_ns), 30);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	CU_ASSERT_EQUAL(t.ready_ns, 130);
	t.now_ns = 130;
	t.max = 1;
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
	CU_ASSERT_PTR_EQUAL(out[0], &ev[1]);
	CU_ASSERT_EQUAL(atomic_load(&q.oldest_ns), 30);
	CU_ASSERT_EQUAL(queue_oldest_ns(&q, NULL), 30);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 1);
	CU_ASSERT_EQUAL(atomic_load(&q.oldest_ns), INT64_MAX);
	queue_fini(&q);
}

/* A cohort has the key of the event that leaves first. */
static void test_cohort(void)
{
	struct queue q;
	struct weir_event *out[8];

	begin(&q, 2, 1, 1000, false);
	for (int i = 0; i < 9; i++)
		push_key(&q, i, 1, (uint64_t)i % 3, (uint64_t)(90 - 10 * i));
	CU_ASSERT_EQUAL(pop(&q, 8, 20, true, out), 3);
	for (int k = 0; k < 3; k++)
		CU_ASSERT_PTR_EQUAL(out[k], &ev[8 - 3 * k]);
	CU_ASSERT_EQUAL(pop(&q, 2, 20, true, out), 2);
	CU_ASSERT_PTR_EQUAL(out[0], &ev[7]);
	CU_ASSERT_EQUAL(pop(&q, 8, 20, false, out), 4);
	queue_fini(&q);
}

/* Partitions: the events of one key leave in order, although the later ones have less work. */
static void test_partitions(void)
{
	struct queue q;
	struct weir_event *out[8];
	struct queue_take t = {.n_ranks = 2, .max = 8, .sharers = 1, .now_ns = 1};

	begin(&q, 1, 2, 1000, true);
	push_key(&q, 0, 0, 0, 500); /* key and partition 0 */
	push_key(&q, 1, 0, 1, 5);   /* key and partition 1 */
	push_key(&q, 2, 0, 2, 50);  /* key 2, partition 0 */
	push_key(&q, 3, 0, 0, 1);
	push_key(&q, 4, 0, 0, 1);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 4);
	CU_ASSERT_PTR_EQUAL(out[0], &ev[2]);
	CU_ASSERT_PTR_EQUAL(out[1], &ev[0]);
	CU_ASSERT_PTR_EQUAL(out[2], &ev[3]);
	CU_ASSERT_PTR_EQUAL(out[3], &ev[4]);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0); /* leased */
	queue_release(&q, t.part);
	t.rank = 1;
	push_key(&q, 5, 0, 1, 2);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 2);
	CU_ASSERT_PTR_EQUAL(out[0], &ev[1]);
	CU_ASSERT_PTR_EQUAL(out[1], &ev[5]);
	queue_fini(&q);
}

/* Events beyond the first capacity, width, pause, and a fair share. */
static void test_bounds(void)
{
	struct queue q;
	struct weir_event *out[WEIR_BATCH_MAX];
	struct queue_take t = {.n_ranks = 1, .max = WEIR_BATCH_MAX, .sharers = 4};

	begin(&q, 2, 1, 0, false);
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(queue_room_locked(&q), 64);
	lock_release(&q.lock);
	for (int i = 0; i < 400; i++)
		push(&q, i, i % 2, (uint64_t)i, 0);
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(queue_room_locked(&q), 0);
	CU_ASSERT_EQUAL(queue_class_length_locked(&q, 1), 200);
	lock_release(&q.lock);
	queue_steer(&q, true, false);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 0);
	queue_steer(&q, false, false);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 100);
	queue_set_width(&q, 3);
	CU_ASSERT_EQUAL(queue_pop(&q, &t, out), 3);
	CU_ASSERT_TRUE(t.counted);
	CU_ASSERT_EQUAL(queue_kept(&q, 0), 3);
	queue_set_width(&q, 0);
	for (int left = 297; left > 0;)
		left -= queue_pop(&q, &t, out);
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	queue_fini(&q);
}

CUNIT_MAIN("queue shortest", {"classes", test_classes}, {"never", test_never}, {"peek", test_peek},
    {"linger", test_linger}, {"cohort", test_cohort}, {"partitions", test_partitions},
    {"bounds", test_bounds})
