/* SPDX-License-Identifier: MIT */
/* The timer wheel on a fake clock: timers never fire early and at most two ticks late, whatever was
 * moved, cancelled or set in between. An idle wheel needs no wake-ups. */
#include "io/timer.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define MS 1000000LL
#define S  1000000000LL

struct probe {
	struct weir_timer timer;
	int64_t due_ns;
	int fired;
};

static int64_t now_ns;
static int64_t worst_late_ns;
static int early, total;

static void on_fire(struct weir_loop *loop, struct weir_timer *t)
{
	struct probe *p = (struct probe *)t;

	(void)loop;
	p->fired++;
	total++;
	if (now_ns < p->due_ns)
		early++;
	if (now_ns - p->due_ns > worst_late_ns)
		worst_late_ns = now_ns - p->due_ns;
}

static void reset(struct timer_wheel *w, int64_t start_ns)
{
	now_ns = start_ns;
	worst_late_ns = 0;
	early = total = 0;
	timer_wheel_init(w, 4 * MS, start_ns);
}

static void set(struct timer_wheel *w, struct probe *p, int64_t at_ns)
{
	p->timer.fire = on_fire;
	p->due_ns = at_ns;
	timer_wheel_set(w, &p->timer, at_ns);
}

/* Sleep as a loop does: until the wheel has work, rounded up to whole ms. Returns the number of
 * wake-ups. */
static int run_until(struct timer_wheel *w, int64_t end_ns)
{
	int wakes = 0;

	while (timer_wheel_next_ns(w) <= end_ns) {
		int64_t next = timer_wheel_next_ns(w);
		if (next > now_ns)
			now_ns = (next + MS - 1) / MS * MS;
		timer_wheel_run(w, now_ns, NULL);
		wakes++;
	}
	now_ns = end_ns;
	timer_wheel_run(w, now_ns, NULL);
	return wakes;
}

static void test_empty(void)
{
	struct timer_wheel w;
	struct probe p = {0};

	reset(&w, 5 * S);
	CU_ASSERT_EQUAL(timer_wheel_next_ns(&w), INT64_MAX);
	timer_wheel_cancel(&w, &p.timer);
	set(&w, &p, 6 * S);
	CU_ASSERT(timer_wheel_next_ns(&w) <= 6 * S);
	timer_wheel_cancel(&w, &p.timer);
	CU_ASSERT_EQUAL(timer_wheel_next_ns(&w), INT64_MAX);
	run_until(&w, 10 * S);
	CU_ASSERT_EQUAL(p.fired, 0);
}

static void test_distances(void)
{
	static const int64_t delays[] = {0, 1, 3 * MS, 4 * MS, 5 * MS, 2044 * MS, 2047 * MS,
	    2048 * MS, 2049 * MS, 5 * S, 30 * S, 1048 * S, 1049 * S, 3600 * S, 90000 * S};
	struct timer_wheel w;

	for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++)
		for (int64_t start = 7 * S + 1; start < 10 * S; start += 37 * MS) {
			struct probe p = {0};
			reset(&w, start);
			set(&w, &p, start + delays[i]);
			run_until(&w, start + delays[i] + 9 * MS);
			CU_ASSERT_EQUAL(p.fired, 1);
			CU_ASSERT_EQUAL(early, 0);
			CU_ASSERT(worst_late_ns <= 8 * MS);
			CU_ASSERT_EQUAL(timer_wheel_next_ns(&w), INT64_MAX);
		}
}

static void test_lazy_move(void)
{
	struct timer_wheel w;
	struct probe p = {0};

	reset(&w, S);
	set(&w, &p, 2 * S);
	for (int i = 0; i < 1000; i++) { /* a connection that is never idle for a second */
		run_until(&w, now_ns + 50 * MS);
		set(&w, &p, now_ns + S);
	}
	CU_ASSERT_EQUAL(p.fired, 0);
	set(&w, &p, now_ns + 20 * MS); /* earlier */
	run_until(&w, now_ns + 30 * MS);
	CU_ASSERT_EQUAL(p.fired, 1);
	CU_ASSERT(worst_late_ns <= 8 * MS);
}

static void test_few_wakeups(void)
{
	struct timer_wheel w;
	struct probe p = {0};

	reset(&w, S);
	set(&w, &p, now_ns + 30 * S);
	CU_ASSERT(run_until(&w, now_ns + 31 * S) <= 3);
	CU_ASSERT_EQUAL(p.fired, 1);
}

static void test_random(void)
{
	enum { N = 400 };
	static struct probe p[N];
	struct timer_wheel w;
	int expected = 0;

	srand(1);
	memset(p, 0, sizeof(p));
	reset(&w, 3 * S);
	for (int step = 0; step < 20000; step++) {
		struct probe *q = &p[rand() % N];
		int64_t delay = (rand() % 4 == 0 ? 40 * S : 300 * MS) * (rand() % 1000) / 1000;
		bool was_set = q->timer.prev != NULL;
		if (rand() % 8 == 0) {
			timer_wheel_cancel(&w, &q->timer);
			expected -= was_set;
		} else {
			set(&w, q, now_ns + delay);
			expected += !was_set;
		}
		run_until(&w, now_ns + rand() % 10 * MS);
	}
	run_until(&w, now_ns + 50 * S);
	CU_ASSERT_EQUAL(total, expected);
	CU_ASSERT_EQUAL(early, 0);
	CU_ASSERT(worst_late_ns <= 8 * MS);
	CU_ASSERT_EQUAL(timer_wheel_next_ns(&w), INT64_MAX);
}

static struct timer_wheel chain_wheel;
static struct probe chain_other;

static void on_chain(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	total++;
	timer_wheel_cancel(&chain_wheel, &chain_other.timer);
	timer_wheel_set(&chain_wheel, t, now_ns);
}

/* A callback may cancel another timer of its slot and set itself to now: it then fires in the next
 * iteration, not in this one. */
static void test_callback_sets(void)
{
	struct probe p = {.timer.fire = on_chain};

	memset(&chain_other, 0, sizeof(chain_other));
	reset(&chain_wheel, S);
	set(&chain_wheel, &chain_other, S + 100 * MS);
	timer_wheel_set(&chain_wheel, &p.timer, S + 100 * MS);
	now_ns = S + 104 * MS;
	timer_wheel_run(&chain_wheel, now_ns, NULL);
	CU_ASSERT_EQUAL(total, 1);
	CU_ASSERT_EQUAL(chain_other.fired, 0);
	now_ns += 4 * MS;
	timer_wheel_run(&chain_wheel, now_ns, NULL);
	CU_ASSERT_EQUAL(total, 2);
	timer_wheel_cancel(&chain_wheel, &p.timer);
}

/* No time is too late. */
static void test_latest(void)
{
	struct timer_wheel w;
	struct probe p = {.fired = 0};

	reset(&w, S);
	set(&w, &p, INT64_MAX);
	CU_ASSERT(timer_wheel_next_ns(&w) > 1000 * S);
	now_ns = 2 * S;
	timer_wheel_run(&w, now_ns, NULL);
	CU_ASSERT_EQUAL(total, 0);
	timer_wheel_cancel(&w, &p.timer);
}

CUNIT_MAIN("timer", {"latest", test_latest}, {"empty", test_empty}, {"distances", test_distances},
    {"moved later is lazy", test_lazy_move}, {"few wake-ups", test_few_wakeups},
    {"random against the clock", test_random}, {"callbacks set and cancel", test_callback_sets})
