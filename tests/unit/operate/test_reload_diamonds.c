/* SPDX-License-Identifier: MIT */
/* A reload of a graph with very many routes through few inline stages. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"

/* 2^FORKS routes: a reload that follows each of them never ends. */
#define FORKS 60

static const struct weir_outlet fork_outlets[] = {
    {"left", &probe_type, false, ""}, {"right", &probe_type, false, ""}, {.name = NULL}};

static void fork_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_emit(st, i % 2, &ev[i]);
}

static const struct weir_stage_ops fork_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.fork",
    .summary = "passes events on by two outlets",
    .accepts = &probe_type,
    .outlets = fork_outlets,
    .handle = fork_handle};

/* `first` has a queue; behind it are FORKS inline stages, each with two links to the next. */
static struct weir_graph *built(void)
{
	struct weir_spec *spec = weir_spec_new("diamonds");
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;
	char name[16], next[16];

	fixture_stage(spec, "first", "t.pass", "f0");
	for (int i = 0; i < FORKS; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(next, sizeof(next), "f%d", i + 1);
		struct weir_stage_spec *s = fixture_stage(spec, name, "t.fork", NULL);
		weir_spec_link(s, "left", next, false);
		weir_spec_link(s, "right", next, false);
		s->inlined = true;
	}
	snprintf(name, sizeof(name), "f%d", FORKS);
	fixture_stage(spec, name, "t.end", NULL)->inlined = true;
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

static void test_prepare(void)
{
	fixture_register(&fork_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

static void test_reload_ends(void)
{
	struct weir_errs errs = {0};
	struct weir_drain_report report = {0};
	struct weir_graph *g = built(), *next = built();

	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	sink_first_cost(&weir_graph_stage(g, "first")->sink, 7 * NS_PER_MS);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next, g, &errs), 0);
	CU_ASSERT_EQUAL(sink_mean_cost_ns(&weir_graph_stage(next, "first")->sink), 7 * NS_PER_MS);
	weir_graph_drain(g, NS_PER_S, &report);
	weir_graph_free(g);
	weir_graph_drain(next, NS_PER_S, &report);
	weir_graph_free(next);
}

CUNIT_MAIN("reload_diamonds", {"types are known", test_prepare}, {"it ends", test_reload_ends})
