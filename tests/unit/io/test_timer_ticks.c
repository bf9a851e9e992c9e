/* SPDX-License-Identifier: MIT */
/* The timer wheel with the ticks of the load generator, on a virtual clock: never early, at most a
 * tick late, nothing lost. */
#include "io/timer.h"

#include <string.h>

#include <weir/random.h>

#include "cunit_main.h"

#define MS   1000000LL
#define TICK (1000 * MS / TIMER_SLOTS)
#define N    3000

static struct timer_wheel wheel;
static struct weir_timer timers[N];
static int64_t now_ns, step_ns;
static int fired;

/* No timer may be early, or late by more than a tick and the step. */
static void on_fire(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	CU_ASSERT_TRUE(t->at_ns <= now_ns);
	CU_ASSERT_TRUE(now_ns - t->at_ns <= wheel.tick_ns + step_ns);
	fired++;
}

static void begin(int64_t tick_ns, int64_t at_ns)
{
	timer_wheel_init(&wheel, tick_ns, at_ns);
	memset(timers, 0, sizeof(timers));
	for (int i = 0; i < N; i++)
		timers[i].fire = on_fire;
	fired = 0;
}

/* Fire all timers due at `at_ns`. Returns how many. */
static int fire(int64_t at_ns, int64_t since_ns)
{
	int before = fired;

	now_ns = at_ns;
	step_ns = since_ns;
	timer_wheel_run(&wheel, at_ns, NULL);
	return fired - before;
}

static void test_on_time(void)
{
	begin(TICK, 5000 * MS);
	for (int i = 0; i < N; i++) /* up to ten seconds ahead: more than one revolution */
		timer_wheel_set(&wheel, &timers[i],
		    5000 * MS + (int64_t)(weir_random_unit(weir_random_at(3, (uint64_t)i)) *
					  (i % 2 ? 1e9 : 1e10)));
	for (int64_t at_ns = 5000 * MS; at_ns < 15100 * MS; at_ns += 3 * MS)
		fire(at_ns, 3 * MS);
	CU_ASSERT_EQUAL(fired, N);
	CU_ASSERT_EQUAL(timer_wheel_next_ns(&wheel), INT64_MAX);
}

static void test_cancelled(void)
{
	begin(TICK, 0);
	for (int i = 0; i < N; i++)
		timer_wheel_set(&wheel, &timers[i], i * MS / 4);
	for (int i = 0; i < N; i += 2) {
		timer_wheel_cancel(&wheel, &timers[i]);
		timer_wheel_cancel(&wheel, &timers[i]); /* not set: no effect */
	}
	CU_ASSERT_EQUAL(fire(2000 * MS, 2000 * MS), N / 2);
}

static void test_past_and_after_a_pause(void)
{
	begin(MS, 0);
	CU_ASSERT_EQUAL(fire(7000 * MS, 0), 0);       /* after a long idle time */
	timer_wheel_set(&wheel, &timers[0], 10 * MS); /* already past */
	CU_ASSERT_TRUE(timer_wheel_next_ns(&wheel) <= 7001 * MS);
	CU_ASSERT_EQUAL(fire(timer_wheel_next_ns(&wheel), 7000 * MS), 1);
	CU_ASSERT_EQUAL(timer_wheel_next_ns(&wheel), INT64_MAX);
}

CUNIT_MAIN("timer ticks", {"on time", test_on_time}, {"cancelled ones do not fire", test_cancelled},
    {"past deadlines", test_past_and_after_a_pause})
