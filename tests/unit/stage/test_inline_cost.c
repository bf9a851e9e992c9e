/* SPDX-License-Identifier: MIT */
/*
 * An inline stage runs in the thread of the stage before it. Its time is part of the cost of an
 * event there; otherwise admission to that stage would let in far too many events. Its handler
 * waits until the clock has advanced by at least COST_NS, so the learned cost has a lower bound on
 * any machine.
 */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "stage/stage.h"

#define COST_NS (2 * NS_PER_MS)

static void slow_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int64_t until_ns = clock_now_ns() + COST_NS * n;

	while (clock_now_ns() < until_ns)
		sched_yield();
	end_handle(st, ev, n);
}

static const struct weir_stage_ops slow_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.slow",
    .summary = "takes its time",
    .accepts = &probe_type,
    .handle = slow_handle};

static struct weir_graph *start(int n_inline)
{
	struct weir_spec *spec = weir_spec_new("inline");
	static const char *const names[] = {"front", "one", "two"};

	for (int i = 0; i <= n_inline; i++) {
		bool last = i == n_inline;
		struct weir_stage_spec *s = fixture_stage(
		    spec, names[i], last ? "t.slow" : "t.pass", last ? NULL : names[i + 1]);
		s->inlined = i > 0;
		fixture_set(s, "admission.policy", i ? "none" : "weir");
	}
	prepare(100);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	return g;
}

static void end(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* The first batch sets the cost at once, without waiting for a tick. */
static void test_the_first_batch_tells(void)
{
	struct weir_graph *g = start(1);
	const struct sink *front = &weir_graph_stage(g, "front")->sink;

	fixture_offer_all(weir_graph_stage(g, "front"), probes, 1, 1);
	FIXTURE_AWAIT(sink_mean_cost_ns(front) >= COST_NS);
	end(g, 1);
}

static void test_each_batch_tells(void)
{
	struct weir_graph *g = start(2);
	struct weir_stage *front = weir_graph_stage(g, "front");
	struct weir_graph_view *v = NULL;

	fixture_offer_all(front, probes, 100, 10);
	FIXTURE_AWAIT(fixture_ended() == 100);
	FIXTURE_AWAIT(sink_cost_ns(&front->sink, 0) >= COST_NS);
	/* The service times of each stage remain its own. */
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_TRUE(
	    v->stages[0].class_view[0].service.sum_ns < v->stages[2].class_view[0].service.sum_ns);
	weir_graph_view_free(v);
	end(g, 100);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&slow_ops);
}

CUNIT_MAIN("cost of inline stages", {"types are known", test_prepare},
    {"the first batch tells", test_the_first_batch_tells},
    {"each batch tells", test_each_batch_tells})
