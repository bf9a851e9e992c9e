/* SPDX-License-Identifier: MIT */
/* Batch policies in a running graph: `cohort: { policy: weir }` sizes the calls of a slow
 * handler. */
#include "fixture/graph/probes.h"

#include <time.h>

static void rest(long ns)
{
	struct timespec left = {0, ns};

	while (nanosleep(&left, &left) != 0)
		;
}

/* Like one fsync for many records: the cost of a call does not depend on its size. */
static void commit_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	rest(2000000);
	end_handle(st, ev, n);
}

static void each_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	rest(1000000L * n);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops commit_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.commit",
    .summary = "takes 2 ms a call",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = commit_handle};
static const struct weir_stage_ops each_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.each",
    .summary = "takes 1 ms an event",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = each_handle};

/* Start stage `s`, and before it a stage that has no batch policy. */
static struct weir_graph *start(const char *use, const char *slo, const char *policy)
{
	struct weir_spec *spec = weir_spec_new("batch");

	CU_ASSERT_EQUAL(
	    weir_spec_text(&fixture_stage(spec, "first", "t.end", NULL)->cohort.policy, "static"),
	    0);
	struct weir_stage_spec *s = fixture_stage(spec, "s", use, NULL);
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "threads.policy", "static");
	fixture_set(s, "slo", slo);
	CU_ASSERT_EQUAL(weir_spec_text(&s->cohort.policy, policy), 0);
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	return g;
}

static void stop(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* Calls with 1, 2, 3 to 4, 5 to 8 ... 129 to 256 events. */
static void test_buckets(void)
{
	for (int n = 1; n <= WEIR_BATCH_MAX; n++) {
		int b = weir_cohort_bucket(n);
		CU_ASSERT_TRUE(b >= 0 && b < WEIR_COHORT_BUCKETS);
		CU_ASSERT_TRUE(n <= 1 << b && (b == 0 || n > 1 << (b - 1)));
	}
}

/* The number of calls with at least `from` and at most `to` events, both ends of buckets. */
static uint64_t calls_of(const struct weir_stage_view *v, int from, int to)
{
	uint64_t n = 0;

	for (int b = weir_cohort_bucket(from); b <= weir_cohort_bucket(to); b++)
		n += v->cohorts[b];
	return n;
}

/* The view of the stage after its calls with `n` events have been counted, which is after the events
 * have ended. */
static struct weir_stage_view counted(struct weir_graph *g, uint64_t n)
{
	struct weir_stage_view v;

	FIXTURE_AWAIT((v = stage_view(g, "s")).batch_events == n &&
		      calls_of(&v, 1, WEIR_BATCH_MAX) == v.batches);
	return v;
}

/* Without a batch policy, a handler that takes 2 ms gets one event at a time. */
static void test_static_bounds_by_service_time(void)
{
	struct weir_graph *g = start("t.commit", "500ms", "static");

	fixture_offer_all(weir_graph_stage(g, "s"), probes, 100, 100);
	struct weir_stage_view v = counted(g, 100);
	CU_ASSERT_EQUAL(v.batches, v.batch_events);
	CU_ASSERT_EQUAL(v.cohorts[0], v.batches);
	CU_ASSERT_EQUAL(calls_of(&v, 2, WEIR_BATCH_MAX), 0);
	stop(g, 100);
}

static void test_weir_gives_what_pays(void)
{
	struct weir_graph *g = start("t.commit", "500ms", "weir");

	fixture_offer_all(weir_graph_stage(g, "s"), probes, 2000, 200);
	struct weir_stage_view v = counted(g, 2000);
	CU_ASSERT_TRUE(v.batch_events > 8 * v.batches);
	CU_ASSERT_TRUE(calls_of(&v, 9, WEIR_BATCH_MAX) > 0);
	stop(g, 2000);
}

/* An eighth of 80 ms allows at most ten events of 1 ms, whatever cohort.max says. */
static void test_weir_keeps_the_objective(void)
{
	struct weir_graph *g = start("t.each", "80ms", "weir");
	struct weir_decision d[8];
	int at = 0, n = 0;

	while ((n = weir_graph_decisions(g, d, 8)) == 0) {
		CU_ASSERT_TRUE_FATAL(at < N - 64);
		fixture_offer_all(weir_graph_stage(g, "s"), probes + at, 64, 64);
		at += 64;
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)at);
	}
	CU_ASSERT_STRING_EQUAL(d[n - 1].action, "batch");
	CU_ASSERT_STRING_EQUAL(d[n - 1].actor, "weir");
	CU_ASSERT_TRUE(d[n - 1].from == 64 && d[n - 1].to < 64);
	CU_ASSERT_PTR_NOT_NULL(strstr(d[n - 1].rule, "per event"));
	stop(g, at);
}

static void test_bound_is_live(void)
{
	struct weir_graph *g = start("t.commit", "500ms", "weir");
	char why[256];

	CU_ASSERT_EQUAL(weir_graph_set(g, "s", "cohort.max", "4", why, sizeof(why)), 0);
	fixture_offer_all(weir_graph_stage(g, "s"), probes, 100, 100);
	struct weir_stage_view v = counted(g, 100);
	CU_ASSERT_TRUE(v.batch_events <= 4 * v.batches);
	CU_ASSERT_EQUAL(calls_of(&v, 1, 4), v.batches);
	stop(g, 100);
}

static void test_unknown_policy(void)
{
	struct weir_spec *spec = weir_spec_new("batch");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	char text[4096];

	weir_spec_text(&fixture_stage(spec, "s", "t.end", NULL)->cohort.policy, "wier");
	CU_ASSERT_EQUAL(weir_spec_check(spec, errs), WEIR_EINVAL);
	weir_errs_format(errs, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "there is no batch policy 'wier'"));
	free(errs);
	weir_spec_free(spec);
}

static void test_prepare(void)
{
	fixture_register(&commit_ops);
	fixture_register(&each_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("graph_batch", {"types are known", test_prepare},
    {"static bounds by service time", test_static_bounds_by_service_time},
    {"weir gives what pays", test_weir_gives_what_pays},
    {"weir keeps the objective", test_weir_keeps_the_objective},
    {"the bound is live", test_bound_is_live}, {"unknown policy", test_unknown_policy},
    {"buckets", test_buckets})
