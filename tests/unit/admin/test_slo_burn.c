/* SPDX-License-Identifier: MIT */
/* Error budgets of classes, with made-up counters: the two windows, when an alert is due and when it
 * ends, and what counts as a miss. */
#include "admin/metrics/burn.h"

#include <math.h>
#include <string.h>

#include "cunit_main.h"

#define S      1000000000LL
#define SLO_NS (100 * S / 1000)

static struct weir_answer_view answers[2];
static struct weir_stage_view stage = {.name = "web", .answers = answers};
static struct weir_graph_view view = {.n_classes = 2,
    .class_name = {"vip", "bulk"},
    .class_slo_ns = {SLO_NS, 0},
    .n_stages = 1,
    .stages = &stage};
static struct burn burn;

static void begin(void)
{
	burn_fini(&burn);
	memset(answers, 0, sizeof(answers));
	view.now_ns = 1000 * S;
	view.class_name[0] = "vip";
	view.class_slo_ns[0] = SLO_NS;
}

static void answer(int class_id, enum weir_outcome outcome, int64_t took_ns, unsigned n)
{
	answers[class_id].by[outcome].count[weir_hist_bucket(took_ns)] += n;
}

/* Run for `seconds`, in which of 100 requests a second `late` take too long. */
static void run(int seconds, unsigned late)
{
	for (int i = 0; i < seconds; i++, view.now_ns += S) {
		answer(0, WEIR_OUTCOME_DONE, SLO_NS / 2, 100 - late);
		answer(0, WEIR_OUTCOME_DONE, 3 * SLO_NS, late);
		burn_feed(&burn, &view);
	}
}

static bool due(void)
{
	return burn_judge(&burn, 0, 0.99).due;
}

static void test_count(void)
{
	uint64_t all = 0, missed = 0;

	begin();
	answer(0, WEIR_OUTCOME_DONE, SLO_NS, 5); /* just in time */
	answer(0, WEIR_OUTCOME_DONE, 2 * SLO_NS, 3);
	answer(0, WEIR_OUTCOME_FAILED, SLO_NS / 10, 2);
	answer(0, WEIR_OUTCOME_SHED, SLO_NS / 10, 7);
	burn_count(&answers[0], SLO_NS, true, &all, &missed);
	CU_ASSERT_EQUAL(all, 17);
	CU_ASSERT_EQUAL(missed, 12);
	all = missed = 0;
	burn_count(&answers[0], SLO_NS, false, &all, &missed);
	CU_ASSERT_EQUAL(all, 10); /* refusals of lower classes do not count */
	CU_ASSERT_EQUAL(missed, 5);
}

/* 14.4 times the budget of 1 % in the last hour and in the last five minutes. */
static void test_fast(void)
{
	begin();
	run(6 * 3600, 0);
	CU_ASSERT_FALSE(due());
	run(300, 100); /* 300 s of 3600: 8.3 % of the hour */
	CU_ASSERT_FALSE(due());
	run(240, 100); /* 15 % */
	struct burn_state s = burn_judge(&burn, 0, 0.99);
	CU_ASSERT_TRUE(s.due);
	CU_ASSERT_EQUAL(s.long_ns, 3600 * S);
	CU_ASSERT_EQUAL(s.short_ns, 300 * S);
	CU_ASSERT_DOUBLE_EQUAL(s.long_share, 0.15, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(s.short_share, 1, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(s.rate, 15, 1);
	run(300, 0); /* the short window ends it */
	CU_ASSERT_FALSE(due());
}

/* 6 times the budget, for so long that it is 6 % of six hours. */
static void test_slow(void)
{
	begin();
	run(6 * 3600, 0);
	run(1200, 10);
	CU_ASSERT_FALSE(due());
	run(6 * 3600 + 60, 8);
	struct burn_state s = burn_judge(&burn, 0, 0.99);
	CU_ASSERT_TRUE(s.due);
	CU_ASSERT_EQUAL(s.long_ns, 6 * 3600 * S);
	CU_ASSERT_EQUAL(s.short_ns, 1800 * S);
	CU_ASSERT_DOUBLE_EQUAL(s.long_share, 0.08, 0.001);
}

/* Nothing is due right after the start, nor for a few misses. */
static void test_not_yet(void)
{
	begin();
	run(299, 100);
	CU_ASSERT_FALSE(due());
	run(30, 100);
	CU_ASSERT_TRUE(due());
	begin();
	for (int i = 0; i < 400; i++, view.now_ns += S) {
		if (i % 50 == 0)
			answer(0, WEIR_OUTCOME_DONE, 3 * SLO_NS, 1);
		burn_feed(&burn, &view);
	}
	CU_ASSERT_FALSE(due()); /* 7 misses */
}

/* A class without an objective is not watched; a new objective or another class begins again. */
static void test_changes(void)
{
	begin();
	run(400, 100);
	CU_ASSERT_TRUE(due());
	CU_ASSERT_FALSE(burn_judge(&burn, 1, 0.99).due);
	view.class_slo_ns[0] = 10 * SLO_NS;
	burn_feed(&burn, &view);
	CU_ASSERT_FALSE(due());
	run(400, 100);
	CU_ASSERT_FALSE(due()); /* nothing is late any more */
	view.class_slo_ns[0] = SLO_NS;
	run(400, 100);
	CU_ASSERT_TRUE(due());
	view.class_name[0] = "gold";
	burn_feed(&burn, &view);
	CU_ASSERT_FALSE(due());
	view.class_slo_ns[0] = 0;
	burn_feed(&burn, &view);
	CU_ASSERT_PTR_NULL(burn.class_[0]);
	burn_fini(&burn);
}

CUNIT_MAIN("burn", {"count", test_count}, {"fast", test_fast}, {"slow", test_slow},
    {"not yet", test_not_yet}, {"changes", test_changes})
