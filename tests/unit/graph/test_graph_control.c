/* SPDX-License-Identifier: MIT */
/* What the control thread may do with pools: use the last thread of the budget, but none beyond it.
 * And a policy learns nothing from a pause. */
#include "fixture/graph/probes.h"

#include "base/task.h"
#include "control/control.h"
#include "graph/graph.h"
#include "operate/changes.h"
#include "sched/pool.h"

/* ---- the budget ---- */

/* Stage `a` with 1 to `max` threads, and another that uses the whole budget except for `left`
 * threads and those of a. */
static struct weir_spec *spec_of(const char *max, int left)
{
	struct weir_spec *spec = weir_spec_new("budget");
	char most[16];

	fixture_stage(spec, "a", "t.end", NULL);
	fixture_stage(spec, "other", "t.end", NULL);
	fixture_set(&spec->stages[0], "threads.min", "1");
	fixture_set(&spec->stages[0], "threads.max", max);
	fixture_set(&spec->stages[0], "threads.policy", "weir");
	snprintf(most, sizeof(most), "%d", task_budget() - 1 - left);
	fixture_set(&spec->stages[1], "threads.min", most);
	fixture_set(&spec->stages[1], "threads.max", most);
	return spec;
}

static void stop(struct weir_graph *g)
{
	struct pool *pool = weir_graph_stage(g, "a")->pool;

	pool_close(pool);
	CU_ASSERT_EQUAL(pool_join(pool, INT64_MAX), 0);
	weir_graph_free(g);
}

/* Grow `a` in a graph that is built but not started, so that no other thread resizes it. */
static void grows(struct weir_spec *spec, int times)
{
	struct weir_graph *g = fixture_build(spec);
	struct pool *pool = weir_graph_stage(g, "a")->pool;

	for (int i = 1; i <= times; i++)
		CU_ASSERT_EQUAL(graph_grow_around(g, pool), 1 + i);
	CU_ASSERT_EQUAL(graph_grow_around(g, pool), 1 + times);
	CU_ASSERT_EQUAL(atomic_load(&pool->target), 1 + times);
	stop(g);
}

static void test_grows_within_the_budget(void)
{
	grows(spec_of("8", 0), 0);
	grows(spec_of("8", 1), 1);
	grows(spec_of("8", 2), 2);
}

static void test_grows_within_its_bounds(void)
{
	grows(spec_of("3", 8), 2);
	struct weir_spec *spec = spec_of("8", 8);
	spec->stages[0].mode = WEIR_MODE_EXCLUSIVE; /* a second thread would have nothing to do */
	grows(spec, 0);
	spec = spec_of("8", 8);
	fixture_set(&spec->stages[0], "threads.policy", "static");
	grows(spec, 0);
}

static void test_budget_may_be_spent_to_the_last(void)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	weir_graph_free(fixture_build(spec_of("8", 0)));
	struct weir_spec *spec = spec_of("8", -1);
	CU_ASSERT_EQUAL(weir_graph_build(spec, &g, errs), WEIR_EINVAL);
	CU_ASSERT_EQUAL(errs->total, 1);
	weir_spec_free(spec);
	free(errs);
}

/* ---- a pause ---- */

/* 1: the span of the next sample is wanted */
static atomic_int wanted;
static _Atomic int64_t span_ns;

static void look(void *state, const struct weir_admission_spec *p, const struct admission_sample *s)
{
	(void)state, (void)p;
	if (atomic_exchange(&wanted, 0))
		atomic_store(&span_ns, s->span_ns);
}

/* Wait until the control thread has completed `n` rounds. */
static void await_rounds(struct weir_graph *g, int n)
{
	for (; n > 0; n--) {
		int64_t then_ns = weir_graph_tick_ns(g);
		FIXTURE_AWAIT(weir_graph_tick_ns(g) != then_ns);
	}
}

/* The first sample after a pause does not include the pause: it covers exactly one tick. */
static void test_pause_teaches_nothing(void)
{
	struct weir_spec *spec = weir_spec_new("pause");
	char why[200];

	fixture_set(fixture_stage(spec, "a", "t.end", NULL), "admission.policy", "weir");
	prepare(2);
	struct weir_graph *g = fixture_build(spec);
	struct weir_stage *a = weir_graph_stage(g, "a");
	struct admission_policy policy = *a->sink.policy;
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	policy.tick = look;
	policy.least_left = NULL;
	policy.most_wait = NULL;
	a->sink.policy = &policy;
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, errs), 0);
	free(errs);
	weir_thread_attach(g, "test");
	fixture_offer_all(a, probes, 1, 1); /* otherwise there is nothing to sample */
	atomic_store(&wanted, 1);
	FIXTURE_AWAIT(atomic_load(&wanted) == 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	fixture_offer_all(a, probes + 1, 1, 1);
	await_rounds(g, 4);
	atomic_store(&span_ns, 0);
	atomic_store(&wanted, 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&span_ns) != 0);
	CU_ASSERT_EQUAL(atomic_load(&span_ns), ADMISSION_TICK_NS);
	FIXTURE_AWAIT(fixture_ended() == 2);
	/* The totals of an idle stage are summed once, and then only looked up. */
	control_stop(g->control);
	graph_sums(g, a->id);
	CU_ASSERT_TRUE(g->sums[a->id].known);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("graph_control", {"types are known", test_prepare},
    {"grows within the budget", test_grows_within_the_budget},
    {"grows within its bounds", test_grows_within_its_bounds},
    {"the budget may be spent to the last", test_budget_may_be_spent_to_the_last},
    {"a pause teaches nothing", test_pause_teaches_nothing})
