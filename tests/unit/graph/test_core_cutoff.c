/* SPDX-License-Identifier: MIT */
/* Core groups with the gate `cutoff`: long events yield, and the visit goes on with what is behind
 * them. */
#include "fixture/graph/probes.h"

#include <weir/clock.h>

#include "graph/graph.h"
#include "sched/cores.h"

#define CALLS_MAX 64

/* Number of slices that a probe needs, and the numbers of the probes in the order in which the
 * handlers worked on them. */
static int slices[CALLS_MAX];
static int order[CALLS_MAX];
static int n_order;
static atomic_int n_waits, n_wrong;

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&n_waits, 1);
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	end_handle(st, ev, n);
}

/* Like t.gate, which core groups refuse, since it may block. */
static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.wait",
    .summary = "waits for the test",
    .accepts = &probe_type,
    .handle = wait_handle};

static int number_of(const struct weir_event *ev)
{
	return (int)((const struct probe *)ev - probes);
}

static void note(const struct weir_event *ev)
{
	if (n_order < CALLS_MAX)
		order[n_order++] = number_of(ev);
}

/* An event that needs several slices works until its slice is over, without looking at how long the
 * slice is. */
static void slice_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		int *left = &slices[number_of(ev[i])];
		note(ev[i]);
		if (weir_slice_over(st) && i > 0) /* its slice begins with this question */
			atomic_fetch_add(&n_wrong, 1);
		if (--*left == 0) {
			weir_event_finish(&ev[i], WEIR_OK);
			continue;
		}
		while (!weir_slice_over(st))
			;
		weir_requeue(st, &ev[i]);
	}
}

static const struct weir_stage_ops slice_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.slice",
    .summary = "works in slices",
    .accepts = &probe_type,
    .handle = slice_handle};

static void note_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		note(ev[i]);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops note_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.note",
    .summary = "notes the order",
    .accepts = &probe_type,
    .handle = note_handle};

static void in_group(struct weir_spec *spec, const char *name, const char *use, const char *batch)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, NULL);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "cohort.max", batch);
	fixture_set(
	    s, "cohort.linger", batch[0] == '1' ? "0" : "1us"); /* so that batches are full */
	fixture_set(s, "slo", "3600s");
}

static struct weir_graph *start(const char *batch)
{
	struct weir_spec *spec = weir_spec_new("cutoff");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, "1");
	g->starve_ns = 0;
	g->gate.cutoff_ns = 1000000;
	in_group(spec, "a", "t.slice", batch);
	in_group(spec, "b", "t.note", "1");
	in_group(spec, "w", "t.wait", "1");
	for (int i = 0; i < CALLS_MAX; i++)
		slices[i] = 1;
	prepare(CALLS_MAX);
	n_order = 0;
	atomic_store(&probe_gate, 0);
	atomic_store(&n_waits, 0);
	atomic_store(&n_wrong, 0);
	struct weir_graph *graph = fixture_start(spec);
	weir_thread_attach(graph, "test");
	/* the core is busy while the events of a test arrive */
	fixture_offer_all(weir_graph_stage(graph, "w"), &probes[CALLS_MAX - 1], 1, 1);
	FIXTURE_AWAIT(atomic_load(&n_waits) == 1);
	return graph;
}

static void offer(struct weir_graph *g, const char *name, int first, int n)
{
	fixture_offer_all(weir_graph_stage(g, name), &probes[first], n, 1);
}

/* Let the core work; it must work on the probes in the order of `want`, which -1 ends. */
static void finish(struct weir_graph *g, int n, const int *want)
{
	int i = 0;

	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n + 1);
	for (; want[i] >= 0; i++)
		CU_ASSERT_EQUAL(order[i], want[i]);
	CU_ASSERT_EQUAL(n_order, i);
	CU_ASSERT_EQUAL(atomic_load(&n_wrong), 0);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* The long event yields. The visit does the rest of its line, although an event of b waits. Then it
 * is the turn of b, whose event is older than the long one is now. */
static void test_one(void)
{
	struct weir_graph *g = start("1");

	slices[0] = 2;
	offer(g, "a", 0, 4);
	offer(g, "b", 10, 1);
	finish(g, 5, (const int[]){0, 1, 2, 3, 10, 0, -1});
}

/* All in one batch: each event has a slice of its own. */
static void test_batch(void)
{
	struct weir_graph *g = start("8");

	slices[0] = slices[2] = 2;
	offer(g, "a", 0, 4);
	offer(g, "b", 10, 1);
	finish(g, 5, (const int[]){0, 1, 2, 3, 10, 0, 2, -1});
}

/* Two long events keep their order, and neither is called twice in a visit. */
static void test_two(void)
{
	struct weir_graph *g = start("1");

	slices[0] = 4;
	slices[1] = 3;
	offer(g, "a", 0, 3);
	offer(g, "b", 10, 2);
	finish(g, 5, (const int[]){0, 1, 2, 10, 11, 0, 1, 0, 1, 0, -1});
}

/* ---- where there are no slices ---- */

static atomic_int n_over;

static void ask_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	while (weir_clock_ns(CLOCK_MONOTONIC) <= weir_now_ns(st))
		;
	atomic_fetch_add(&n_over, weir_slice_over(st));
	end_handle(st, ev, n);
}

static const struct weir_stage_ops ask_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.ask",
    .summary = "asks whether its slice is over",
    .accepts = &probe_type,
    .handle = ask_handle};

static void ask(struct weir_spec *spec)
{
	prepare(1);
	atomic_store(&n_over, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	offer(g, "a", 0, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL(atomic_load(&n_over), 0);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_none(void)
{
	struct weir_spec *spec = weir_spec_new("pool");

	fixture_stage(spec, "a", "t.ask", NULL);
	ask(spec);
	spec = weir_spec_new("inline");
	fixture_stage(spec, "a", "t.ask", NULL)->inlined = true;
	ask(spec);
	spec = weir_spec_new("time");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, "1");
	g->gate.time_ns = 1;
	in_group(spec, "a", "t.ask", "1");
	ask(spec);
}

static void test_types(void)
{
	fixture_register(&wait_ops);
	fixture_register(&slice_ops);
	fixture_register(&note_ops);
	fixture_register(&ask_ops);
}

CUNIT_MAIN("core cutoff", {"types are known", test_types}, {"one", test_one}, {"batch", test_batch},
    {"two", test_two}, {"none", test_none})
