/* SPDX-License-Identifier: MIT */
/* Which knobs of a group can be set: by the kind of the group, and while a temporary value of another
 * knob will end. */
#include "acts_rig.h"

#include "graph/graph.h"
#include "sched/cores.h"

static struct weir_spec *a_group(const char *schedule, const char *cores)
{
	static const char *const name[] = {"a", "b", "c"};
	struct weir_spec *spec = weir_spec_new("knobs");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	weir_spec_text(&gs->schedule, schedule);
	weir_spec_text(&gs->cores, cores);
	for (int i = 0; i < 3; i++) {
		struct weir_stage_spec *s = fixture_stage(
		    spec, name[i], i < 2 ? "t.pass" : "t.end", i < 2 ? name[i + 1] : NULL);
		weir_spec_text(&s->group, "core");
		weir_spec_text(&s->admission.policy, "none");
	}
	prepare(MANY);
	return spec;
}

static struct weir_graph *begin(const char *schedule, const char *cores)
{
	struct weir_graph *g = fixture_start(a_group(schedule, cores));

	weir_thread_attach(g, "test");
	return g;
}

static struct pool *pool_of(const struct weir_graph *g)
{
	return weir_graph_stage(g, "a")->pool;
}

static struct cores_plan told(const struct weir_graph *g)
{
	struct cores_plan plan;

	cores_get(pool_of(g)->cores, &plan);
	return plan;
}

static int set(struct weir_graph *g, const char *name, const char *knob, const char *value)
{
	return weir_graph_set(g, name, knob, value, why, sizeof(why));
}

static bool gate_is_5(const struct weir_graph *g)
{
	struct cores_plan p = told(g);

	return p.limits.gate == NEXT_EVENTS && p.limits.gate_events == 5;
}

static int set_brief(struct weir_graph *g, const char *of, const char *value, int64_t for_ns)
{
	return weir_graph_set_for(g, "core", of, value, for_ns, why, sizeof(why));
}

static bool is_fixed(struct weir_graph *g, const char *name, const char *of)
{
	struct weir_override l;

	CU_ASSERT_EQUAL(weir_graph_override(g, name, of, &l), 0);
	return l.fixed;
}

/* Knobs that no value can be set for, as the kind of the group has no use for them. */
static void test_kinds(void)
{
	static const char *const cores[] = {
	    "cores", "gate.time", "gate.arrived", "starve", "balance"};
	static const char *const threads[] = {"threads.min", "threads.max"};

	for (int i = 0; i < 2; i++) {
		struct weir_graph *g = begin(i ? "shared" : "color", "auto");
		for (int k = 0; k < 5; k++)
			CU_ASSERT_EQUAL(is_fixed(g, "core", cores[k]), i == 1);
		for (int k = 0; k < 2; k++) {
			CU_ASSERT_EQUAL(is_fixed(g, "core", threads[k]), i == 0);
			CU_ASSERT_TRUE(is_fixed(g, "b", threads[k]));
		}
		CU_ASSERT_EQUAL(is_fixed(g, "b", "local"), i == 1);
		CU_ASSERT_FALSE(is_fixed(g, "b", "queue.limit"));
		CU_ASSERT_TRUE(is_fixed(g, "core", "order"));
		CU_ASSERT_EQUAL(set(g, "core", "threads.max", "1"), i ? 0 : WEIR_EINVAL);
		CU_ASSERT_EQUAL(set(g, "cor", "starve", "1ms"), WEIR_ENOENT);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "there is no stage or group 'cor'"));
		finished(g);
	}
}

/* A value that would be invalid when a temporary one of the same group ends is refused. */
static void test_lasts(void)
{
	const int64_t hour_ns = 3600LL * 1000000000;
	struct weir_spec *spec = a_group("color", "1");

	spec->groups[0].gate.time_ns = 10000000;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(set_brief(g, "gate.time", "0", hour_ns), 0);
	CU_ASSERT_EQUAL(set(g, "core", "gate.events", "5"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "'gate.time' of group 'core' is 0 for a time only"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "more than once"));
	CU_ASSERT_EQUAL(set_brief(g, "gate.events", "5", 2 * hour_ns), WEIR_EINVAL);
	CU_ASSERT_FALSE(gate_is_5(g));
	CU_ASSERT_EQUAL(set(g, "core", "starve", "7ms"), 0);
	CU_ASSERT_EQUAL(set(g, "core", "schedule", "srpt"), 0);
	CU_ASSERT_EQUAL(set_brief(g, "gate.events", "5", hour_ns / 2), 0);
	CU_ASSERT_TRUE(gate_is_5(g));
	CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(set(g, "core", "gate.time", "0"), 0);
	CU_ASSERT_EQUAL(set(g, "core", "gate.events", "5"), 0);
	CU_ASSERT_TRUE(gate_is_5(g));
	finished(g);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN(
    "core kinds", {"types are known", test_types}, {"kinds", test_kinds}, {"lasts", test_lasts})
