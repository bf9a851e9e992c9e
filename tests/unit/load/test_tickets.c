/* SPDX-License-Identifier: MIT */
/* The queue and the heap of tickets. */
#include "load/tickets.h"

#include "cunit_main.h"

static struct ticket numbered(uint32_t number, int64_t at_ns)
{
	return (struct ticket){.request = number, .attempt_ns = at_ns};
}

static void test_queue_is_fifo(void)
{
	struct ticket_queue q = {0};
	uint32_t in = 0, out = 0;

	for (int round = 0; round < 2000; round++) { /* grows, and wraps around in its ring */
		for (int i = 0; i < 3; i++) {
			struct ticket t = numbered(in++, 0);
			CU_ASSERT_TRUE(ticket_queue_push(&q, &t));
		}
		CU_ASSERT_EQUAL(ticket_queue_first(&q)->request, out);
		CU_ASSERT_EQUAL(ticket_queue_pop(&q).request, out++);
	}
	for (; q.n > 0; out++)
		CU_ASSERT_EQUAL(ticket_queue_pop(&q).request, out);
	CU_ASSERT_EQUAL(in, out);
	ticket_queue_fini(&q);
}

static void test_queue_front(void)
{
	struct ticket_queue q = {0};

	for (uint32_t i = 0; i < 1000; i++) {
		struct ticket t = numbered(i, 0);
		CU_ASSERT_TRUE(ticket_queue_push_front(&q, &t));
	}
	for (uint32_t i = 1000; i > 0; i--)
		CU_ASSERT_EQUAL(ticket_queue_pop(&q).request, i - 1);
	ticket_queue_fini(&q);
}

static void test_queue_is_bounded(void)
{
	struct ticket_queue q = {0};
	struct ticket t = numbered(0, 0);

	while (q.n < TICKETS_MAX)
		CU_ASSERT_TRUE_FATAL(ticket_queue_push(&q, &t));
	CU_ASSERT_FALSE(ticket_queue_push(&q, &t));
	CU_ASSERT_FALSE(ticket_queue_push_front(&q, &t));
	ticket_queue_pop(&q);
	CU_ASSERT_TRUE(ticket_queue_push(&q, &t));
	ticket_queue_fini(&q);
}

static void test_heap_sorts(void)
{
	struct ticket_heap h = {0};
	struct ticket dice = {.random = 7};
	int64_t before_ns = 0;

	CU_ASSERT_EQUAL(ticket_heap_next_ns(&h), INT64_MAX);
	for (int i = 0; i < 5000; i++) {
		struct ticket t = numbered(0, (int64_t)(ticket_uniform(&dice) * 1000));
		CU_ASSERT_TRUE(ticket_heap_push(&h, &t));
		if (i % 3 == 0) { /* the least of the current entries */
			int64_t least_ns = ticket_heap_next_ns(&h);
			CU_ASSERT_EQUAL(ticket_heap_pop(&h).attempt_ns, least_ns);
		}
	}
	while (h.n > 0) {
		struct ticket t = ticket_heap_pop(&h);
		CU_ASSERT_TRUE(t.attempt_ns >= before_ns);
		before_ns = t.attempt_ns;
	}
	ticket_heap_fini(&h);
}

static void test_uniform(void)
{
	struct ticket t = {.random = 1};
	int below[4] = {0};

	for (int i = 0; i < 40000; i++) {
		double u = ticket_uniform(&t);
		CU_ASSERT_TRUE_FATAL(u > 0 && u < 1);
		below[(int)(u * 4)]++;
	}
	for (int i = 0; i < 4; i++) /* 10,000 +- five standard deviations */
		CU_ASSERT_TRUE(below[i] > 9567 && below[i] < 10433);
}

CUNIT_MAIN("tickets", {"first in, first out", test_queue_is_fifo}, {"in front", test_queue_front},
    {"the queue is bounded", test_queue_is_bounded}, {"the heap sorts", test_heap_sorts},
    {"uniform numbers", test_uniform})
