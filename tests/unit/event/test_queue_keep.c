/* SPDX-License-Identifier: MIT */
/* Counts of the events that have left a queue and still use its limit and width: each event is
 * counted once, at every moment. */
#include <pthread.h>

#include "event/queue.h"

#include "cunit_main.h"

#define TURNS 100000

static struct weir_event ev[4];
static struct weir_event *out[WEIR_BATCH_MAX];
static const int none[WEIR_CLASSES_MAX];

static void push(struct queue *q, int n, int class_id)
{
	struct weir_event *in[4];

	for (int i = 0; i < n; i++) {
		ev[i] = (struct weir_event){.class_id = (uint8_t)class_id};
		in[i] = &ev[i];
	}
	lock_take(&q->lock);
	CU_ASSERT_EQUAL(queue_push_locked(q, in, n), n);
	lock_release(&q->lock);
}

static bool pop(struct queue *q, int n)
{
	struct queue_take take = {.n_ranks = 1, .max = WEIR_BATCH_MAX, .sharers = 1};

	CU_ASSERT_EQUAL(queue_pop(q, &take, out), n);
	return take.counted;
}

static uint32_t room(struct queue *q)
{
	lock_take(&q->lock);
	uint32_t n = queue_room_locked(q);
	lock_release(&q->lock);
	return n;
}

/* A batch of two classes, of which some events are held and one is released before the end of the
 * batch. */
static void test_batch(void)
{
	const int taken[WEIR_CLASSES_MAX] = {0, 4}, held[WEIR_CLASSES_MAX] = {0, 2};
	struct queue q;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 2, 1, 10, false, false), 0);
	queue_set_width(&q, 6);
	push(&q, 4, 1);
	CU_ASSERT_EQUAL(queue_kept_all(&q), 0);
	CU_ASSERT_TRUE(pop(&q, 4));
	CU_ASSERT_EQUAL(queue_kept(&q, 1), 4);
	CU_ASSERT_EQUAL(queue_held(&q, 1), 0);
	CU_ASSERT_EQUAL(queue_width_left(&q), 2);
	queue_hold(&q, 1, -1); /* held in the batch, and released by another thread */
	CU_ASSERT_EQUAL(queue_kept(&q, 1), 3);
	CU_ASSERT_EQUAL(queue_held(&q, 1), 0);
	CU_ASSERT_EQUAL(room(&q), 7);
	queue_settle(&q, held, taken);
	CU_ASSERT_EQUAL(queue_kept(&q, 1), 1);
	CU_ASSERT_EQUAL(queue_held(&q, 1), 1);
	CU_ASSERT_EQUAL(queue_kept(&q, 0), 0);
	CU_ASSERT_EQUAL(queue_kept_all(&q), 1);
	CU_ASSERT_EQUAL(queue_width_left(&q), 5);
	CU_ASSERT_EQUAL(room(&q), 9);
	queue_hold(&q, 1, -1);
	CU_ASSERT_EQUAL(queue_kept_all(&q), 0);
	CU_ASSERT_EQUAL(room(&q), 10);
	queue_fini(&q);
}

/* Events that were in a handler when the counting began are counted from the moment that they are
 * held. */
static void test_begins(void)
{
	const int held[WEIR_CLASSES_MAX] = {2};
	struct queue q;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 10, false, false), 0);
	push(&q, 3, 0);
	CU_ASSERT_FALSE(pop(&q, 3));
	CU_ASSERT_EQUAL(queue_kept_all(&q), 0);
	queue_settle(&q, none, none);
	CU_ASSERT_FALSE(queue_keeps(&q));
	queue_settle(&q, held, none);
	CU_ASSERT_EQUAL(queue_kept_all(&q), 2);
	CU_ASSERT_EQUAL(room(&q), 8);
	push(&q, 1, 0);
	CU_ASSERT_TRUE(pop(&q, 1));
	CU_ASSERT_EQUAL(queue_kept_all(&q), 3);
	queue_fini(&q);
}

static atomic_bool over;

/* Take, hold and release the same event again and again. */
static void *turns(void *arg)
{
	const int one[WEIR_CLASSES_MAX] = {1};
	struct queue *q = arg;

	for (int i = 0; i < TURNS; i++) {
		lock_take(&q->lock);
		queue_taken(q, 0, 1);
		lock_release(&q->lock);
		queue_settle(q, one, one);
		queue_hold(q, 0, -1);
	}
	atomic_store(&over, true);
	return NULL;
}

/* A reader never counts an event twice, whatever the moment. */
static void test_once(void)
{
	struct queue q;
	pthread_t thread;
	int64_t most = 0;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 1, false, false), 0);
	queue_set_width(&q, 1);
	atomic_store(&over, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, turns, &q), 0);
	while (!atomic_load(&over)) {
		int64_t n = queue_kept_all(&q), held = queue_held(&q, 0);
		most = n > most ? n : most;
		most = held > most ? held : most;
	}
	pthread_join(thread, NULL);
	CU_ASSERT(most <= 1);
	CU_ASSERT_EQUAL(queue_kept_all(&q), 0);
	CU_ASSERT_EQUAL(room(&q), 1);
	queue_fini(&q);
}

int main(void)
{
	static const struct cunit_case cases[] = {
	    {"a batch", test_batch}, {"counting begins", test_begins}, {"once", test_once}};

	return cunit_run("queue_keep", cases, sizeof(cases) / sizeof(cases[0]));
}
