/* SPDX-License-Identifier: MIT */
/* Names of the maximum length: pools, views and decisions contain them in full. */
#include "fixture/graph/probes.h"

#define BEGIN "a.name.of.64.bytes.0123456789.0123456789.0123456789.0123456789."

static const char group_name[] = BEGIN "g", stage_name[] = BEGIN "s";

_Static_assert(sizeof(group_name) == 65 && sizeof(stage_name) == 65, "64 bytes and the end");

static struct weir_decision newest(struct weir_graph *g)
{
	struct weir_decision d = {0};

	CU_ASSERT_EQUAL(weir_graph_decisions(g, &d, 1), 1);
	return d;
}

static void test_stage_of_its_own_pool(void)
{
	struct weir_spec *spec = weir_spec_new(BEGIN "x");
	char why[200];

	fixture_stage(spec, stage_name, "t.end", NULL);
	fixture_stage(spec, BEGIN "t", "t.end", NULL); /* differs in the last byte */
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage_view v = stage_view(g, stage_name);
	CU_ASSERT_STRING_EQUAL(v.name, stage_name);
	CU_ASSERT_STRING_EQUAL(v.group, stage_name);
	CU_ASSERT_STRING_EQUAL(v.placement, "pool");
	CU_ASSERT_EQUAL(weir_graph_set(g, stage_name, "threads.max", "3", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(newest(g).stage, stage_name);
	finish_graph(g, 0);
}

/* The pool of a group is found under the group's name. */
static void test_group(void)
{
	struct weir_spec *spec = weir_spec_new("long");
	struct weir_group_spec *group = weir_spec_add_group(spec, group_name);

	weir_spec_text(&group->threads.policy, "static");
	weir_spec_text(&fixture_stage(spec, stage_name, "t.end", NULL)->group, group_name);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage_view v = stage_view(g, stage_name);
	CU_ASSERT_STRING_EQUAL(v.group, group_name);
	CU_ASSERT_STRING_EQUAL(v.placement, "group");
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("long names", {"types are known", test_prepare},
    {"a stage with a pool of its own", test_stage_of_its_own_pool}, {"a group", test_group})
