/* SPDX-License-Identifier: MIT */
/* Undo after reloads: changes that have no effect any more. */
#include "acts_rig.h"

#include "base/clock.h"

static struct weir_graph *built(struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

/* A graph of `spec` replaces `old`. */
static struct weir_graph *follow(struct weir_graph *old, struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_drain_report report = {0};
	struct weir_graph *g = built(spec);

	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	weir_graph_drain(old, NS_PER_S, &report);
	weir_graph_free(old);
	return g;
}

static int undo(struct weir_graph *g, struct weir_change *act)
{
	return weir_graph_undo(g, act, why, sizeof(why));
}

/* Changes that a reload has overtaken are not undone again: the file has the new value, or the override
 * was dropped. The undo goes on with the change before them. */
static void test_undo_of_nothing(void)
{
	struct weir_spec *same = two_stages(), *next = two_stages();
	struct weir_graph *g = fixture_start(two_stages()), *wanted;
	struct weir_change act;

	weir_log_set_level(WEIR_LOG_ERROR);
	fixture_set(stage_of(same, "last"), "threads.max", "5");
	fixture_set(stage_of(next, "last"), "threads.max", "3");
	fixture_set(stage_of(next, "last"), "threads.min", "3");
	CU_ASSERT_EQUAL(set_for(g, "cohort.max", "8", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
	CU_ASSERT_EQUAL(
	    set_for(g, "queue.limit", "100", 0), 0); /* changes nothing: undone as before */
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "5", 0), 0);
	wanted = built(same);
	CU_ASSERT_EQUAL(weir_graph_configure(g, wanted, NULL), 0);
	weir_graph_free(wanted);
	CU_ASSERT_EQUAL(undo(g, &act), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.queue.limit");
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "5");
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "1", 0), 0);
	g = follow(g, next); /* 1 is below the new threads.min */
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "3");
	CU_ASSERT_EQUAL(undo(g, &act), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.queue.limit");
	CU_ASSERT_EQUAL(undo(g, &act), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.cohort.max");
	CU_ASSERT_EQUAL(undo(g, &act), WEIR_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "no change is left"));
	finish_graph(g, 0);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("undo after a reload", {"types are known", test_types},
    {"undo of nothing", test_undo_of_nothing})
