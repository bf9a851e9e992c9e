/* SPDX-License-Identifier: MIT */
/*
 * The time that a stage's threads spend in inline stages after it, in all that is derived from
 * counters: sizes of pools and batches, the tail that policies see, the times to a later stage, and
 * what a reload takes over. The graph is built and never started; the test writes the counters.
 * (That threads write them this way: test_inline_cost.c.)
 */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "graph/meter.h"

#define MS    1000000LL
#define S     1000000000LL
#define OWN   MS
#define BELOW (4 * MS) /* per event, in the inline stage */

static struct weir_graph *g;
static struct weir_stage *a, *b, *front;

/* a -> b, which is inline -> front, whose policy is asked upstream. */
static void start(void)
{
	struct weir_spec *spec = weir_spec_new("books");

	fixture_set(fixture_stage(spec, "a", "t.pass", "b"), "admission.policy", "weir");
	fixture_stage(spec, "b", "t.pass", "front")->inlined = true;
	fixture_set(fixture_stage(spec, "front", "t.end", NULL), "admission.policy", "weir");
	prepare(1);
	g = fixture_build(spec);
	a = weir_graph_stage(g, "a");
	b = weir_graph_stage(g, "b");
	front = weir_graph_stage(g, "front");
	for (int i = 0; i < g->n_stages; i++)
		g->gone[i].times = calloc(1, sizeof(struct time_book));
}

/* `n` events went through `st`, which spent `own_ns` on each, and inline stages after it
 * `behind_ns`. */
static void pass(const struct weir_stage *st, uint64_t n, int64_t own_ns, int64_t behind_ns)
{
	struct gone *gone = &g->gone[st->id];
	struct class_book *c = &gone->book.class_book[0];

	book_add(&c->offered, n);
	book_add(&c->completed, n);
	book_add(&c->behind_ns, n * (uint64_t)behind_ns);
	hist_book_add(&gone->times[0].service, own_ns, n);
	book_add(&c->handled, n);
	book_add(&gone->book.busy_ns, n * (uint64_t)own_ns);
	book_add(&gone->book.batches, n);
	book_add(&gone->book.batch_events, n);
	if (st->n_outlets > 0)
		book_add(&gone->link_tried[0], n);
	book_changed(&gone->book);
	g->changes[st->id]++;
}

/* ---- pools and batches ---- */

static void test_pools_see_all_that_threads_do(void)
{
	start();
	pass(a, 10, OWN, BELOW);
	const struct stage_sums *sums = graph_sums(g, a->id);
	CU_ASSERT_EQUAL(sums->busy_ns, 10 * (OWN + BELOW));
	CU_ASSERT_EQUAL(sums->ended_busy_ns, 10 * (OWN + BELOW));
	weir_graph_free(g);
}

/* ---- policies ---- */

static void test_the_tail_has_it(void)
{
	struct admission_sample sample;
	int64_t now_ns = S;

	start();
	struct meter *m = g->meters[a->id];
	meter_sample(m, g, a, now_ns, &sample);
	for (int i = 0; i < 20; i++) {
		pass(a, 50, OWN, BELOW);
		meter_sample(m, g, a, now_ns += ADMISSION_TICK_NS, &sample);
	}
	CU_ASSERT_EQUAL(sink_mean_cost_ns(&a->sink), OWN + BELOW);
	CU_ASSERT_TRUE(sample.service_p99_ns >= OWN + BELOW);
	CU_ASSERT_TRUE(sample.service_p99_ns <= 2 * OWN + BELOW); /* within a bucket */
	weir_graph_free(g);
}

/* ---- routes ---- */

/* The time in b is part of a's cost, and b is also a stage on the route: its time counts once. */
static void test_times_on_the_way(void)
{
	start();
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->route);
	sink_first_cost(&a->sink, OWN + BELOW);
	sink_first_cost(&front->sink, 3 * MS);
	for (int i = 1; i <= 200; i++) {
		pass(a, 50, OWN, BELOW);
		pass(b, 50, BELOW, 0);
		pass(front, 50, 3 * MS, 0);
		graph_route_tick(g, i * 100 * MS);
	}
	const struct ahead *ahead = a->sink.ahead;
	CU_ASSERT_FATAL(atomic_load(&ahead->fronts[0]) >> front->sink.front & 1);
	int64_t lead_ns = atomic_load(&ahead->lead_ns[0][front->sink.front]);
	CU_ASSERT_TRUE(llabs(lead_ns - (OWN + BELOW)) < MS / 10);
	/* After the cost of a, which is accounted for separately, only the front remains. */
	CU_ASSERT_TRUE(llabs(atomic_load(&ahead->rest_ns[0]) - 3 * MS) < MS / 10);
	weir_graph_free(g);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("books of inline stages", {"types are known", test_prepare},
    {"pools see all that threads do", test_pools_see_all_that_threads_do},
    {"the tail has it", test_the_tail_has_it}, {"times on the way", test_times_on_the_way})
