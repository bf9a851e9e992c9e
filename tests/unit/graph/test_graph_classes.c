/* SPDX-License-Identifier: MIT */
/* Classes of a graph: priorities and guarantees, resolved at build time. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

static struct weir_spec *spec_with(int classes)
{
	struct weir_spec *spec = weir_spec_new("classes");

	fixture_stage(spec, "a", "t.end", NULL);
	for (int c = 0; c < classes; c++) {
		char name[16];
		snprintf(name, sizeof(name), "c%d", c);
		weir_spec_add_class(spec, name);
	}
	return spec;
}

static void test_none(void)
{
	struct weir_graph *g = fixture_build(spec_with(0));

	CU_ASSERT_EQUAL(g->n_classes, 1);
	CU_ASSERT_TRUE(g->class_priority[0] == 0 && g->class_guarantee[0] == 0);
	weir_graph_free(g);
}

static void test_defaults(void)
{
	struct weir_graph *g = fixture_build(spec_with(WEIR_CLASSES_MAX));

	CU_ASSERT_EQUAL(g->n_classes, WEIR_CLASSES_MAX);
	for (int c = 0; c < WEIR_CLASSES_MAX; c++) {
		CU_ASSERT_EQUAL(g->class_priority[c], c);
		CU_ASSERT_EQUAL(g->class_guarantee[c], c ? 0.02 : 0);
	}
	weir_graph_free(g);
}

static void test_given(void)
{
	struct weir_spec *spec = spec_with(3);

	spec->classes[1].priority = 0;
	spec->classes[2].guarantee = 0.3;
	struct weir_graph *g = fixture_build(spec);
	CU_ASSERT_TRUE(g->class_priority[1] == 0 && g->class_guarantee[1] == 0);
	CU_ASSERT_TRUE(g->class_priority[2] == 1 && g->class_guarantee[2] == 0.3);
	weir_graph_free(g);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("classes of a graph", {"types are known", test_prepare}, {"none", test_none},
    {"defaults", test_defaults}, {"given", test_given})
