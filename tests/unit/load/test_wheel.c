/* SPDX-License-Identifier: MIT */
/* The timing wheel on a virtual clock: never early, at most a tick late, nothing lost. */
#include "load/wheel.h"

#include "load/tickets.h"

#include "cunit_main.h"

#define MS 1000000LL
#define N  3000

static struct wheel wheel;
static struct wheel_item items[N];

/* Fire all items due at `now_ns`. None may be early, or late by more than a tick and the step. */
static int fire(int64_t now_ns, int64_t step_ns)
{
	struct wheel_item *item;
	int n = 0;

	while ((item = wheel_take(&wheel, now_ns))) {
		CU_ASSERT_TRUE(item->at_ns <= now_ns);
		CU_ASSERT_TRUE(now_ns - item->at_ns <= wheel.tick_ns + step_ns);
		n++;
	}
	return n;
}

static void test_on_time(void)
{
	struct ticket dice = {.random = 3};
	int fired = 0;

	wheel_init(&wheel, 1000 * MS, 1, 5000 * MS);
	for (int i = 0; i < N; i++) /* up to ten seconds ahead: more than one revolution */
		wheel_add(&wheel, &items[i],
		    5000 * MS + (int64_t)(ticket_uniform(&dice) * (i % 2 ? 1e9 : 1e10)));
	for (int64_t now_ns = 5000 * MS; now_ns < 15100 * MS; now_ns += 3 * MS)
		fired += fire(now_ns, 3 * MS);
	CU_ASSERT_EQUAL(fired, N);
	CU_ASSERT_EQUAL(wheel_next_ns(&wheel), INT64_MAX);
}

static void test_removed(void)
{
	wheel_init(&wheel, 1000 * MS, 1, 0);
	for (int i = 0; i < N; i++)
		wheel_add(&wheel, &items[i], i * MS / 4);
	for (int i = 0; i < N; i += 2) {
		wheel_remove(&wheel, &items[i]);
		wheel_remove(&wheel, &items[i]); /* not set: no effect */
	}
	CU_ASSERT_EQUAL(fire(2000 * MS, 2000 * MS), N / 2);
}

static void test_past_and_after_a_pause(void)
{
	wheel_init(&wheel, 100 * MS, MS, 0);
	CU_ASSERT_EQUAL(fire(7000 * MS, 0), 0); /* after a long idle time */
	wheel_add(&wheel, &items[0], 10 * MS);  /* already past */
	CU_ASSERT_TRUE(wheel_next_ns(&wheel) <= 7001 * MS);
	CU_ASSERT_PTR_NULL(wheel_take(&wheel, 7000 * MS));
	CU_ASSERT_PTR_EQUAL(wheel_take(&wheel, wheel_next_ns(&wheel)), &items[0]);
}

CUNIT_MAIN("wheel", {"on time", test_on_time}, {"removed ones do not fire", test_removed},
    {"past deadlines", test_past_and_after_a_pause})
