/* SPDX-License-Identifier: MIT */
/* Which slots of serial keys a core gives to an idle one (sched/serial_choose.h). */
#include "cunit_main.h"

#include "sched/serial_choose.h"

static int64_t work_ns[QUEUE_SLOTS];
static uint32_t events[QUEUE_SLOTS];

static void fill(unsigned slot, uint32_t n)
{
	events[slot] = n;
	work_ns[slot] = n * INT64_C(10000);
}

static int count(const struct slots *slots)
{
	int n = 0;

	for (unsigned i = 0; i < QUEUE_SLOTS; i++)
		n += slots_has(slots, i);
	return n;
}

/* One key has nearly all events. Its slot stays, and the others move. */
static void test_hot(void)
{
	struct slots slots = {0};

	fill(7, SERIAL_LOOK);
	CU_ASSERT_EQUAL(serial_choose(work_ns, events, &slots), INT64_MIN);
	CU_ASSERT_EQUAL(count(&slots), 0);
	fill(9, 2);
	int64_t gain_ns = serial_choose(work_ns, events, &slots);
	CU_ASSERT_EQUAL(gain_ns, 2 * (10000 - SERIAL_TIMES * SERIAL_EVENT_NS));
	CU_ASSERT_EQUAL(count(&slots), 1);
	CU_ASSERT(slots_has(&slots, 9));
}

/* Of equal slots, half move. */
static void test_half(void)
{
	struct slots slots = {0};

	for (unsigned i = 0; i < QUEUE_SLOTS; i++)
		fill(i, 0);
	for (unsigned i = 100; i < 110; i++)
		fill(i, 3);
	serial_choose(work_ns, events, &slots);
	CU_ASSERT_EQUAL(count(&slots), 5);
}

CUNIT_MAIN("choice of slots", {"a hot key stays", test_hot}, {"half of equal ones", test_half})
