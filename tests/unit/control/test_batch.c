/* SPDX-License-Identifier: MIT */
/* Batch policies on a virtual clock, without threads. The stage's calls take a + c * size. */
#include "control/batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cunit_main.h"

/* A stage with one thread. Arrivals vary by `swing` around per_s from window to window. A call
 * takes all waiting events up to the cap. `noise` is the relative variation of its time. */
struct stage {
	const struct batch_policy *policy;
	_Alignas(16) unsigned char state[BATCH_STATE_MAX];
	struct batch_view v;
	double a_us, c_us, per_s, swing, noise, waiting;
	int64_t now_ns;
	unsigned seed;
	int changes;
	struct batch_decision last;
};

static struct stage *stage_of(
    const struct batch_policy *policy, double a_us, double c_us, double per_s, int cap)
{
	struct stage *s = calloc(1, sizeof(*s));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	s->policy = policy;
	s->a_us = a_us;
	s->c_us = c_us;
	s->per_s = per_s;
	s->seed = 1;
	s->v =
	    (struct batch_view){.cap = cap, .max = 256, .slo_ns = 500 * NS_PER_MS, .fixed_ns = 500};
	return s;
}

static double random_around(struct stage *s, double spread)
{
	s->seed = s->seed * 1103515245 + 12345;
	return 1 + spread * ((double)(s->seed >> 16 & 0x7fff) / 16384 - 1);
}

/* 100 ms: make calls until the time is over or nothing waits. */
static void step(struct stage *s)
{
	double left_us = 100000;

	s->waiting += s->per_s * random_around(s, s->swing) / 10;
	while (s->waiting >= 1 && left_us > 0) {
		double size = fmin(floor(s->waiting), s->v.cap);
		double took_us = (s->a_us + s->c_us * size) * random_around(s, s->noise);
		s->waiting -= size;
		left_us -= took_us + s->v.fixed_ns / 1e3;
		s->v.batches++;
		s->v.items += (uint64_t)size;
		s->v.busy_ns += (uint64_t)(took_us * NS_PER_US);
	}
	s->waiting = fmin(s->waiting, 4096);
	s->v.queue_length = (uint32_t)s->waiting;
	s->now_ns += 100 * NS_PER_MS;
	struct batch_decision d = {0};
	if (s->policy->decide(s->state, &s->v, s->now_ns, &d)) {
		CU_ASSERT_TRUE(d.cap >= 1 && d.cap <= s->v.max && d.cap != s->v.cap);
		s->changes++;
		s->v.cap = d.cap;
		s->last = d;
	}
}

static void run(struct stage *s, int seconds)
{
	for (int i = 0; i < seconds * 10; i++)
		step(s);
}

/* Calls of 5 ms and 0.5 ms per event: (62.5 - 5) / 0.5 = 115. */
static void test_fills_an_eighth_of_the_objective(void)
{
	struct stage *s = stage_of(&batch_weir, 5000, 500, 1000, 1);

	s->swing = 0.5;
	s->noise = 0.05;
	run(s, 120);
	CU_ASSERT_TRUE(abs(s->v.cap - 115) <= 25);
	CU_ASSERT_PTR_NOT_NULL(strstr(s->last.rule, "fits into an eighth of slo: a call takes "));
	s->changes = 0;
	run(s, 300);
	CU_ASSERT_TRUE(s->changes <= 3); /* the cap does not follow the arrivals */
	free(s);
}

/* The policy decides once per window of 250 ms; a view within a window decides nothing. */
static void test_looks_once_per_window(void)
{
	struct stage *s = stage_of(&batch_weir, 0, 0, 0, 1);
	struct batch_decision d;

	s->v.slo_ns = NS_PER_S;
	for (int ms = 0; ms <= 1000; ms += 50) {
		bool decided = batch_weir.decide(s->state, &s->v, ms * NS_PER_MS, &d);
		CU_ASSERT_EQUAL(decided, ms > 0 && ms % 250 == 0);
		s->v.batches += 10;
		s->v.items += 10;
		s->v.busy_ns += 10 * NS_PER_MS;
	}
	free(s);
}

/* A change of exactly a fifth is made, a smaller one is not. Calls take 10 us per event, and 121 us
 * are an eighth of the objective, so 12 events fit. */
static bool moves_from(int cap)
{
	struct stage *s = stage_of(&batch_weir, 0, 10, 0, cap);
	struct batch_decision d = {0};
	bool moved = false;

	s->v.slo_ns = 968 * NS_PER_US;
	s->v.fixed_ns = NS_PER_MS;
	for (int i = 0; i <= 20; i++) {
		moved = batch_weir.decide(s->state, &s->v, i * 250 * NS_PER_MS, &d);
		int size = i % 2 ? 4 : 8;
		s->v.batches += 100;
		s->v.items += (uint64_t)(100 * size);
		s->v.busy_ns += (uint64_t)(100 * size * 10 * NS_PER_US);
	}
	CU_ASSERT_TRUE(!moved || d.cap == 12);
	free(s);
	return moved;
}

static void test_moves_by_a_fifth(void)
{
	CU_ASSERT_TRUE(moves_from(10));
	CU_ASSERT_FALSE(moves_from(11));
	CU_ASSERT_TRUE(moves_from(15));
	CU_ASSERT_FALSE(moves_from(14));
}

static void test_learns_a_new_cost(void)
{
	struct stage *s = stage_of(&batch_weir, 5000, 500, 1000, 64);

	s->swing = 0.5;
	run(s, 60);
	s->a_us = 10000;
	s->c_us = 2000; /* (62.5 - 10) / 2 = 26 */
	s->per_s = 300;
	run(s, 120);
	CU_ASSERT_TRUE(abs(s->v.cap - 26) <= 6);
	free(s);
}

static void test_off_where_batches_do_not_pay(void)
{
	struct stage *s = stage_of(&batch_weir, 0, 1000, 700, 64);

	s->swing = 0.9;
	run(s, 60);
	CU_ASSERT_EQUAL(s->v.cap, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(s->last.rule, "batching does not pay"));
	/* With a fixed cost, batches pay again. */
	s->a_us = 3000;
	run(s, 120);
	CU_ASSERT_TRUE(s->v.cap > 20);
	free(s);
}

/* Handlers of 20 us hide a handover cost of 0.5 us, but not one of 1.5 us. */
static void test_off_where_only_the_handover_is_shared(void)
{
	struct stage *s = stage_of(&batch_weir, 0, 20, 20000, 64);

	s->swing = 0.9;
	run(s, 60);
	CU_ASSERT_EQUAL(s->v.cap, 1);
	s->v.fixed_ns = 1500;
	run(s, 60);
	CU_ASSERT_TRUE(s->v.cap > 64);
	free(s);
}

/* The handler does nothing: the handover is the whole cost, and batches share it. */
static void test_tiny_handlers_keep_batches(void)
{
	struct stage *s = stage_of(&batch_weir, 0, 0.01, 100000, 64);

	s->swing = 0.5;
	run(s, 30);
	CU_ASSERT_TRUE(s->v.cap >= 64);
	free(s);
}

static void test_never_beyond_max_or_below_one(void)
{
	struct stage *s = stage_of(&batch_weir, 1e6, 1e5, 10, 8);

	s->swing = 0.5;
	run(s, 120);
	CU_ASSERT_EQUAL(s->v.cap, 1); /* one call alone exceeds the objective */
	free(s);
	s = stage_of(&batch_weir, 100, 1, 1000, 8);
	s->v.max = 16;
	s->swing = 0.5;
	run(s, 30);
	CU_ASSERT_EQUAL(s->v.cap, 16);
	free(s);
}

static void test_quiet_hour(void)
{
	struct stage *s = stage_of(&batch_weir, 5000, 500, 1000, 64);

	s->swing = 0.5;
	run(s, 120);
	int cap = s->v.cap;
	s->per_s = 0;
	run(s, 3600);
	CU_ASSERT_EQUAL(s->v.cap, cap);
	s->per_s = 9.9; /* only single events: a and c cannot be separated */
	s->swing = 0;
	run(s, 3600);
	s->per_s = 1000;
	s->swing = 0.5;
	run(s, 10);
	CU_ASSERT_TRUE(s->v.cap > 60 && s->v.cap < 200);
	free(s);
}

static void test_static_never_moves(void)
{
	struct stage *s = stage_of(&batch_static, 5000, 500, 1000, 64);

	run(s, 60);
	CU_ASSERT_EQUAL(s->changes, 0);
	free(s);
}

/* ---- seda ---- */

static void test_seda_raises_what_is_too_small(void)
{
	struct stage *s = stage_of(&batch_seda, 1000, 10, 100000, 256);
	double best = 0;
	uint64_t then;

	for (int i = 0; i < 60; i++) {
		then = s->v.items;
		run(s, 1);
		best = fmax(best, (double)(s->v.items - then));
	}
	CU_ASSERT_TRUE(s->changes > 3);
	/* The policy oscillates, but stays close to the best throughput. */
	then = s->v.items;
	run(s, 60);
	CU_ASSERT_TRUE((double)(s->v.items - then) / 60 > 0.8 * best);
	free(s);
}

static void test_seda_leaves_one(void)
{
	struct stage *s = stage_of(&batch_seda, 1000, 10, 20000, 2);

	run(s, 20); /* the first throughput seen is the best: the cap falls */
	CU_ASSERT_EQUAL(s->v.cap < 8, true);
	s->a_us = 4000; /* now throughput falls */
	int least = s->v.cap;
	for (int i = 0; i < 30 && s->v.cap <= least + 1; i++)
		run(s, 1);
	CU_ASSERT_TRUE(s->v.cap > least + 1); /* in integers 1 * 1.2 stays 1 forever */
	free(s);
}

static void test_seda_is_still_in_a_lull(void)
{
	struct stage *s = stage_of(&batch_seda, 1000, 10, 20000, 64);

	run(s, 20);
	s->per_s = 50;
	run(s, 10);
	int cap = s->v.cap;
	run(s, 600);
	CU_ASSERT_EQUAL(s->v.cap, cap);
	free(s);
}

static void test_table(void)
{
	CU_ASSERT_PTR_EQUAL(batch_find("weir"), &batch_weir);
	CU_ASSERT_PTR_EQUAL(batch_find("seda"), &batch_seda);
	CU_ASSERT_PTR_EQUAL(batch_find("static"), &batch_static);
	CU_ASSERT_PTR_NULL(batch_find("nope"));
	for (int i = 0; i < 3; i++)
		CU_ASSERT_PTR_EQUAL(batch_find(batch_at(i)->name), batch_at(i));
	CU_ASSERT_PTR_NULL(batch_at(3));
	CU_ASSERT_PTR_NULL(batch_at(-1));
}

CUNIT_MAIN("batch", {"table", test_table}, {"static never moves", test_static_never_moves},
    {"weir fills an eighth of the objective", test_fills_an_eighth_of_the_objective},
    {"weir looks once per window", test_looks_once_per_window},
    {"weir learns a new cost", test_learns_a_new_cost},
    {"weir is off where batching does not pay", test_off_where_batches_do_not_pay},
    {"weir is off where only a cheap hand-over is shared",
	test_off_where_only_the_handover_is_shared},
    {"weir keeps batches of tiny handlers", test_tiny_handlers_keep_batches},
    {"weir stays in bounds", test_never_beyond_max_or_below_one},
    {"weir after a quiet hour", test_quiet_hour},
    {"seda raises what is too small", test_seda_raises_what_is_too_small},
    {"seda does not stick at one", test_seda_leaves_one},
    {"moves by a fifth", test_moves_by_a_fifth},
    {"seda is still in a lull", test_seda_is_still_in_a_lull})
