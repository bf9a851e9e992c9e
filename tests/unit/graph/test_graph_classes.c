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

static const struct weir_event_type bare_type = {.name = "bare", .size = sizeof(struct weir_event)};
static const struct weir_outlet source_outlets[] = {
    {"event", &probe_type, false, ""}, {"bare", &bare_type, false, ""}, {.name = NULL}};

static int no_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	return 0;
}

static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.source",
    .summary = "emits events of two types",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = source_outlets,
    .start = no_start};
static const struct weir_stage_ops bare_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.bare",
    .summary = "finishes events that are not probes",
    .accepts = &bare_type,
    .handle = end_handle};

/* The fields of one event type are not read from an event of another type. */
static void test_of_another_type(void)
{
	struct weir_spec *spec = weir_spec_new("classes");
	struct weir_stage_spec *s = fixture_stage(spec, "src", "t.source", NULL);
	struct probe probe = {.producer = 0x61616161};
	/* the bytes that follow the event would match */
	struct probe bare = {.producer = 0x61616161};

	weir_spec_link(s, "event", "a", false);
	weir_spec_link(s, "bare", "b", false);
	fixture_stage(spec, "a", "t.end", NULL);
	fixture_stage(spec, "b", "t.bare", NULL);
	struct weir_class_spec *first = weir_spec_add_class(spec, "first");
	first->match = calloc(1, sizeof(*first->match));
	first->n_match = 1;
	first->match[0].field = strdup("producer");
	first->match[0].pattern = strdup("aaaa");
	weir_spec_add_class(spec, "last");
	struct weir_graph *g = fixture_build(spec);
	weir_event_init(&probe.ev, &probe_type, 1);
	weir_event_init(&bare.ev, &bare_type, 1);
	CU_ASSERT_EQUAL(weir_classify(g->stages[0], &probe.ev), 0);
	CU_ASSERT_EQUAL(weir_classify(g->stages[0], &bare.ev), 1);
	weir_graph_free(g);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
	fixture_register(&source_ops);
	fixture_register(&bare_ops);
}

CUNIT_MAIN("classes of a graph", {"types are known", test_prepare}, {"none", test_none},
    {"defaults", test_defaults}, {"given", test_given}, {"of another type", test_of_another_type})
