/* SPDX-License-Identifier: MIT */
/* The kill switch: its effect on the admission of stages in each mode, and its journal rows. The
 * stages refuse all but the first event for hours: rate 0.001/s, burst 1. */
#include "fixture/graph/probes.h"

static struct weir_graph *made(int overload, const char *mode)
{
	struct weir_spec *spec = weir_spec_new("overload");

	for (int i = 0; i < 2; i++) {
		struct weir_stage_spec *s = fixture_stage(spec, i ? "b" : "a", "t.end", NULL);
		fixture_set(s, "admission.policy", "rate");
		fixture_set(s, "admission.rate", "0.001");
		fixture_set(s, "admission.burst", "1");
		fixture_set(s, "admission.mode", mode);
	}
	spec->overload_mode = overload;
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	return g;
}

static void finish(struct weir_graph *g)
{
	weir_thread_detach();
	finish_graph(g, 0);
}

/* How many of ten events are admitted by stage `name`; refused ones are finished. */
static int taken(struct weir_graph *g, const char *name)
{
	static int at;
	struct weir_event *ev[10];

	for (int i = 0; i < 10; i++) {
		struct probe *p = &probes[at++ % N];
		weir_event_init(&p->ev, &probe_type, 1);
		ev[i] = &p->ev;
	}
	return weir_offer(weir_graph_stage(g, name), ev, 10, NULL);
}

static uint64_t would_shed(struct weir_graph *g, const char *name)
{
	return stage_view(g, name).class_view[0].shadow_shed;
}

static void test_spec(void)
{
	struct weir_spec *spec = weir_spec_new("overload");

	CU_ASSERT_EQUAL(spec->overload_mode, WEIR_ADMISSION_ENFORCE);
	weir_spec_free(spec);
	struct weir_graph *g = made(WEIR_ADMISSION_SHADOW, "enforce");
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_SHADOW);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").admission_mode, "shadow");
	CU_ASSERT_EQUAL(taken(g, "a"), 10);
	CU_ASSERT_EQUAL(would_shed(g, "a"), 9);
	finish(g);
}

static void test_turned(void)
{
	struct weir_graph *g = made(WEIR_ADMISSION_ENFORCE, "enforce");

	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_ENFORCE);
	CU_ASSERT_EQUAL(taken(g, "a"), 1);
	CU_ASSERT_EQUAL(taken(g, "b"), 1);
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_SHADOW), 0);
	CU_ASSERT_EQUAL(taken(g, "a"), 10);
	CU_ASSERT_EQUAL(taken(g, "b"), 10);
	CU_ASSERT_EQUAL(would_shed(g, "a"), 10);
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_OFF), 0);
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_OFF);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "b").admission_mode, "off");
	CU_ASSERT_EQUAL(taken(g, "b"), 10);
	CU_ASSERT_EQUAL(would_shed(g, "b"), 10);
	/* Back again: the policies have forgotten nothing. */
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_ENFORCE), 0);
	CU_ASSERT_EQUAL(taken(g, "a"), 0);
	CU_ASSERT_EQUAL(taken(g, "b"), 0);
	CU_ASSERT_EQUAL(
	    weir_graph_set_overload(g, (enum weir_admission_mode)(WEIR_ADMISSION_ENFORCE + 1)),
	    WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_ENFORCE);
	finish(g);
}

/* The weaker of the two modes applies, and changing the knob meanwhile does not lift the cap. */
static void test_smaller(void)
{
	struct weir_graph *g = made(WEIR_ADMISSION_ENFORCE, "shadow");
	char why[200];

	CU_ASSERT_EQUAL(taken(g, "a"), 10);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").admission_mode, "shadow");
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_OFF), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "admission.mode", "enforce", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(taken(g, "a"), 10);
	CU_ASSERT_EQUAL(would_shed(g, "a"), 9);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").admission_mode, "off");
	CU_ASSERT_EQUAL(weir_graph_get(g, "a", "admission.mode", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(why, "enforce");
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_ENFORCE), 0);
	CU_ASSERT_EQUAL(taken(g, "a"), 1); /* changing the knob refilled its bucket */
	finish(g);
}

static void test_journal(void)
{
	struct weir_graph *g = made(WEIR_ADMISSION_ENFORCE, "enforce");
	struct weir_decision d = {0};

	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_OFF), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_decisions(g, &d, 1), 1);
	CU_ASSERT_STRING_EQUAL(d.actor, "operator");
	CU_ASSERT_STRING_EQUAL(d.action, "set");
	CU_ASSERT_STRING_EQUAL(d.rule, "overload.mode = off");
	CU_ASSERT_STRING_EQUAL(d.inputs, "it was enforce");
	CU_ASSERT_STRING_EQUAL(d.stage, "");
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, (enum weir_admission_mode)7), WEIR_EINVAL);
	CU_ASSERT_EQUAL_FATAL(weir_graph_decisions(g, &d, 1), 1);
	CU_ASSERT_STRING_EQUAL(d.rule, "overload.mode = off");
	finish(g);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("overload", {"types are known", test_prepare}, {"of the spec", test_spec},
    {"turned", test_turned}, {"the smaller mode", test_smaller}, {"journal", test_journal})
