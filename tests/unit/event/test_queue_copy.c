/* SPDX-License-Identifier: MIT */
/* Queues with a partition for each copy of a core group: how events are dealt. */
#include "event/queue.h"

#include "cunit_main.h"

#define N 600

static struct weir_event event[N];
static struct weir_event *ev[N];

static void prepare(struct queue *q, int copies)
{
	for (int i = 0; i < N; i++) {
		event[i] = (struct weir_event){.key = 1, .trace_id = (uint64_t)i};
		ev[i] = &event[i];
	}
	CU_ASSERT_EQUAL_FATAL(queue_init(q, 1, copies, N, false, false), 0);
	q->copy_cores = 2;
}

static uint64_t push(struct queue *q, struct weir_event **list, int n, int copy)
{
	uint64_t parts = 0;

	lock_take(&q->lock);
	CU_ASSERT_EQUAL(queue_push_copy_locked(q, list, n, copy, &parts), n);
	lock_release(&q->lock);
	return parts;
}

static int pop(struct queue *q, int copy, int max, struct weir_event **out)
{
	struct queue_take take = {.rank = copy, .n_ranks = q->n_parts, .max = max, .sharers = 1};

	return queue_pop(q, &take, out);
}

static void empty(struct queue *q)
{
	struct weir_event *out[WEIR_BATCH_MAX];

	for (int k = 0; k < q->n_parts; k++) {
		while (pop(q, k, WEIR_BATCH_MAX, out) > 0)
			continue;
		CU_ASSERT_EQUAL(queue_copy_length(q, k), 0);
	}
	queue_fini(q);
}

/* In turn, whatever the sizes of the runs, up to one. */
static void test_turns(void)
{
	for (int copies = 1; copies <= 5; copies++) {
		struct queue q;
		int done = 0;
		prepare(&q, copies);
		for (int run = 1; done + run <= N; run = run % 13 + 1) {
			push(&q, ev + done, run, ANY_COPY);
			done += run;
			for (int k = 0; k < copies; k++) {
				int more = (int)queue_copy_length(&q, k) * copies - done;
				CU_ASSERT_TRUE(more > -copies && more < copies);
			}
			CU_ASSERT_EQUAL(queue_length(&q), (uint32_t)done);
		}
		empty(&q);
	}
}

static void test_parts(void)
{
	struct queue q;

	prepare(&q, 4);
	CU_ASSERT_EQUAL(push(&q, ev, 1, ANY_COPY), 1);
	CU_ASSERT_EQUAL(push(&q, ev + 1, 2, ANY_COPY), 6);
	CU_ASSERT_EQUAL(push(&q, ev + 3, 2, ANY_COPY), 9);
	CU_ASSERT_EQUAL(push(&q, ev + 5, 4, ANY_COPY), 15);
	empty(&q);
}

/* What a core sends stays in its copy, in order, and does not change whose turn it is. */
static void test_own(void)
{
	struct weir_event *out[WEIR_BATCH_MAX];
	struct queue q;

	prepare(&q, 3);
	CU_ASSERT_EQUAL(push(&q, ev, 10, 2), 4);
	CU_ASSERT_EQUAL(push(&q, ev + 10, 1, ANY_COPY), 1);
	CU_ASSERT_EQUAL(queue_copy_length(&q, 2), 10);
	CU_ASSERT_EQUAL(pop(&q, 1, 64, out), 0);
	CU_ASSERT_EQUAL(pop(&q, 2, 4, out), 4);
	CU_ASSERT_EQUAL(queue_copy_length(&q, 2), 6);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(out[i]->trace_id, (uint64_t)i);
	CU_ASSERT_EQUAL(pop(&q, 0, 64, out), 1);
	CU_ASSERT_EQUAL(out[0]->trace_id, 10);
	empty(&q);
}

CUNIT_MAIN("queue copies", {"turns", test_turns}, {"parts", test_parts}, {"own", test_own})
