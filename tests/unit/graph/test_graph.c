/* SPDX-License-Identifier: MIT */
/* A graph as a whole: types, placements, resizing, knobs, drain. */
#include "fixture/graph/probes.h"

#include "stage/stage.h"
#include "sched/pool.h"

/* The same three stages, unchanged, for each placement in the configuration. */
static void run_placed(const char *placement)
{
	struct weir_spec *spec = weir_spec_new("placed");
	struct weir_group_spec *group = weir_spec_add_group(spec, "shared");

	group->threads.max = 2;
	fixture_stage(spec, "a", "t.pass", "b");
	fixture_stage(spec, "b", "t.pass", "c");
	fixture_stage(spec, "c", "t.end", NULL);
	for (int i = 0; i < 3; i++) {
		struct weir_stage_spec *s = &spec->stages[i];
		s->threads.max = 2;
		fixture_set(s, "queue.limit", "20000"); /* a fast sender must not be refused here */
		fixture_set(s, "admission.policy", "none");
		s->inlined = strcmp(placement, "inline") == 0;
		if (strcmp(placement, "group") == 0)
			weir_spec_text(&s->group, "shared");
	}
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, N, 64);
	FIXTURE_AWAIT(fixture_ended() == N);
	weir_thread_detach();
	check_each_once(N);
	struct weir_stage_view v = stage_view(g, "b");
	CU_ASSERT_STRING_EQUAL(v.use, "t.pass");
	CU_ASSERT_STRING_EQUAL(v.placement, placement);
	CU_ASSERT_EQUAL(v.class_view[0].offered, N);
	CU_ASSERT_EQUAL(v.batch_events, N);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), N);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].wait), N);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), N);
	finish_graph(g, 0);
}

static void test_own_pools(void)
{
	run_placed("pool");
}

static void test_group(void)
{
	run_placed("group");
}

static void test_inline(void)
{
	run_placed("inline");
}

/* The longest possible name: a prefix of it is not found. */
static void test_group_with_a_long_name(void)
{
	struct weir_spec *spec = weir_spec_new("long");
	char name[65];

	memset(name, 'g', 64);
	name[64] = '\0';
	weir_spec_text(&weir_spec_add_group(spec, name)->threads.policy, "static");
	weir_spec_text(&fixture_stage(spec, "end", "t.end", NULL)->group, name);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage_view v = stage_view(g, "end");
	CU_ASSERT_STRING_EQUAL(v.placement, "group");
	CU_ASSERT_EQUAL(strlen(weir_graph_stage(g, "end")->pool->name), 64);
	finish_graph(g, 0);
	/* The same for a stage: decisions contain its full name. */
	struct weir_decision d;
	char why[256];
	spec = weir_spec_new("long");
	fixture_stage(spec, name, "t.end", NULL);
	g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_set(g, name, "threads.max", "2", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_decisions(g, &d, 1), 1);
	CU_ASSERT_STRING_EQUAL(d.stage, name);
	finish_graph(g, 0);
}

/* ---- resizing, knobs, drain ---- */

static void test_resize_by_knob(void)
{
	struct weir_spec *spec = weir_spec_new("resize");
	struct weir_stage_spec *s = fixture_stage(spec, "end", "t.end", NULL);
	char why[256] = "", value[64];

	fixture_set(s, "threads.max", "8");
	weir_spec_text(&s->threads.policy, "static");
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	for (int round = 0; round < 10; round++) {
		CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.min", round % 2 ? "1" : "6", why,
				    sizeof(why)),
		    0);
		CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", round % 2 ? "1" : "8", why,
				    sizeof(why)),
		    0);
		fixture_offer_all(weir_graph_stage(g, "end"), probes + round * 2000, 2000, 32);
		int want = round % 2 ? 1 : 6;
		FIXTURE_AWAIT(stage_view(g, "end").threads_now == want);
		if (round % 2)
			weir_graph_set(g, "end", "threads.max", "8", why, sizeof(why));
	}
	FIXTURE_AWAIT(fixture_ended() == N);
	check_each_once(N);
	/* The thread budget of the machine applies to operators as well. */
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "1024", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "end", "threads.min", "1024", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "at least 1024 threads, but the budget"));
	CU_ASSERT_EQUAL(stage_view(g, "end").threads_min, 1);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "8", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_get(g, "end", "threads.max", value, sizeof(value)), 0);
	CU_ASSERT_STRING_EQUAL(value, "8");
	weir_thread_detach();
	finish_graph(g, 0);
}

/* If one bound is a number, an `auto` for the other respects it, however many cores there are. */
static void test_auto_keeps_to_the_number(void)
{
	static const struct {
		int64_t min, max;
		int cores, least, most;
	} cases[] = {{-1, 1, 16, 1, 1}, {-1, 20, 16, 16, 20}, {8, -1, 2, 8, 8}, {1, -1, 4, 1, 4},
	    {-1, -1, 4, 4, 4}, {2, 3, 64, 2, 3}, {-1, -1, 4096, 1024, 1024}, {1, 1, 1, 1, 1}};
	struct weir_spec *spec = weir_spec_new("auto");
	struct weir_stage_spec *s = fixture_stage(spec, "end", "t.end", NULL);
	char why[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_threads_spec t = {.min = cases[i].min, .max = cases[i].max};
		int min, max;
		pool_bounds(&t, cases[i].cores, &min, &max);
		CU_ASSERT(min == cases[i].least && max == cases[i].most);
	}
	fixture_set(s, "threads.min", "auto");
	fixture_set(s, "threads.max", "1");
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage_view v = stage_view(g, "end");
	CU_ASSERT(v.threads_min == 1 && v.threads_max == 1 && v.threads_target == 1);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "end", "threads.max", "4096", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "2", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(stage_view(g, "end").threads_max, 2);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "1", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(stage_view(g, "end").threads_min, 1);
	finish_graph(g, 0);
}

static void test_bad_knobs(void)
{
	struct weir_spec *spec = weir_spec_new("knobs");
	char why[256] = "";

	fixture_stage(spec, "end", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "nope", "threads.max", "8", why, sizeof(why)), WEIR_ENOENT);
	CU_ASSERT_STRING_EQUAL(why, "there is no stage or group 'nope'");
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "treads.max", "8", why, sizeof(why)), WEIR_ENOENT);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "end", "threads.max", "many", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "end", "threads.policy", "seda", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "9", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "end", "threads.min", "10", why, sizeof(why)), WEIR_EINVAL);
	struct weir_decision d[8];
	CU_ASSERT_EQUAL(weir_graph_decisions(g, d, 8), 1);
	CU_ASSERT_STRING_EQUAL(d[0].actor, "operator");
	CU_ASSERT_STRING_EQUAL(d[0].rule, "threads.max = 9");
	finish_graph(g, 0);
}

static void test_drain_closes_what_is_left(void)
{
	struct weir_spec *spec = weir_spec_new("drain");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	struct weir_drain_report r;
	pthread_t opener;

	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.max", "1");
	prepare(50);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes, 50, 50);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	weir_graph_hurry(g);
	/* The handler continues only after the queue has been closed. */
	void *open_when_closed(void *arg);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&opener, NULL, open_when_closed, NULL), 0);
	weir_graph_drain(g, 60000000000LL, &r);
	pthread_join(opener, NULL);
	weir_thread_detach();
	CU_ASSERT_EQUAL(r.closed, 49);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 1);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), 49);
	check_each_once(50);
	weir_graph_free(g);
}

void *open_when_closed(void *arg);
void *open_when_closed(void *arg)
{
	FIXTURE_AWAIT(atomic_load(&fixture_failed) == 49);
	atomic_store(&probe_gate, 1);
	return arg;
}

/* Register every type. Must be the first test. */
static void test_registry(void)
{
	static const struct weir_stage_ops *const all[] = {&pass_ops, &end_ops, &gate_ops};
	static const struct weir_stage_ops old = {
	    .abi = WEIR_STAGE_ABI + 1, .name = "t.old", .summary = "x", .handle = end_handle};
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fixture_register(all[i]);
		CU_ASSERT_PTR_EQUAL(weir_stage_type_find(all[i]->name), all[i]);
	}
	CU_ASSERT_EQUAL(weir_stage_register(&old, &err), WEIR_EABI);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ABI"));
	const char *last = "";
	for (int i = 0; weir_stage_type_at(i); i++) {
		CU_ASSERT(strcmp(last, weir_stage_type_at(i)->name) < 0);
		last = weir_stage_type_at(i)->name;
	}
}

CUNIT_MAIN("graph", {"types are found, sorted, checked", test_registry},
    {"every stage with a pool of its own", test_own_pools}, {"all stages in one group", test_group},
    {"a group with a long name", test_group_with_a_long_name}, {"all stages inline", test_inline},
    {"threads follow the knobs", test_resize_by_knob},
    {"auto keeps to the number", test_auto_keeps_to_the_number},
    {"bad knobs are refused in words", test_bad_knobs},
    {"drain closes what is left", test_drain_closes_what_is_left})
