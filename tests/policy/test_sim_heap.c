/* SPDX-License-Identifier: MIT */
/* The heap of the simulator: ordered by time, and by insertion for equal times, also when the order
 * numbers wrap. */
#include <stdbool.h>

#include "cunit_main.h"

#include "load/rng.h"
#include "sim/heap.h"

#define N 20000

/* Push N entries with few distinct times and pop in between; the popped entries must be in
 * order. */
static void run_from(uint32_t first_order)
{
	struct heap h = {.pushed = first_order};
	static uint32_t of[N]; /* order number of entry i */
	int rc = 0, popped = 0;
	int64_t now = 0;
	struct heap_entry last = {.at = -1};

	for (uint32_t i = 0; i < N || h.n > 0;) {
		bool push = i < N && (h.n == 0 || weir_random_at(1, i + (uint32_t)popped) % 3);
		if (push) {
			of[i] = heap_push(&h, now + (int64_t)(weir_random_at(2, i) % 5), i, &rc);
			i++;
			continue;
		}
		CU_ASSERT_EQUAL(heap_first(&h), h.e[0].at);
		struct heap_entry e = heap_pop(&h);
		popped++;
		CU_ASSERT_EQUAL(of[e.what], e.order);
		if (e.at == last.at)
			CU_ASSERT((int32_t)(e.order - last.order) > 0);
		CU_ASSERT(e.at >= last.at);
		last = e;
		now = e.at + 1; /* later pushes have later times, so no order is violated */
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(popped, N);
	heap_fini(&h);
}

static void test_order(void)
{
	run_from(0);
}

static void test_wrap(void)
{
	run_from(UINT32_MAX - N / 2);
}

CUNIT_MAIN("sim heap", {"by time, then as they came", test_order}, {"orders wrap", test_wrap})
