/* SPDX-License-Identifier: MIT */
/* A graph is ready from the time when all of its sources serve until it drains. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

static bool ready_in_start, ready_in_view;

static bool view_ready(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	bool ready = v->ready;
	weir_graph_view_free(v);
	return ready;
}

static int look(struct weir_stage *st, struct weir_err *err)
{
	(void)err;
	ready_in_start = weir_graph_ready(st->graph);
	ready_in_view = view_ready(st->graph);
	return 0;
}

static const struct weir_outlet source_outlets[] = {
    {"event", &probe_type, false, ""}, {.name = NULL}};
static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.source",
    .summary = "looks at its graph when it is started",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = source_outlets,
    .start = look};

static void test_prepare(void)
{
	fixture_register(&source_ops);
	fixture_register(&end_ops);
}

static void test_ready(void)
{
	struct weir_spec *spec = weir_spec_new("ready");
	struct weir_drain_report report;

	fixture_stage(spec, "src", "t.source", "end");
	fixture_stage(spec, "end", "t.end", NULL);
	ready_in_start = ready_in_view = true;
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_FALSE(ready_in_start);
	CU_ASSERT_FALSE(ready_in_view);
	CU_ASSERT_TRUE(weir_graph_ready(g));
	CU_ASSERT_TRUE(view_ready(g));
	weir_graph_drain(g, 0, &report);
	CU_ASSERT_FALSE(weir_graph_ready(g));
	CU_ASSERT_FALSE(view_ready(g));
	weir_graph_free(g);
}

CUNIT_MAIN("graph_ready", {"types are known", test_prepare}, {"ready", test_ready})
