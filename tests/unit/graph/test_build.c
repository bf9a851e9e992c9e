/* SPDX-License-Identifier: MIT */
/* What a build makes of a spec: pools, queues, states, and the order of init and fini. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "sched/pool.h"
#include "stage/stage.h"

/* ---- types ---- */

/* The names of stages in the order of their calls, one letter each: init, then fini in capitals. */
static char calls[64];
/* Stages with these names fail in init; the second one reports no text. */
static const char *fails = "", *fails_mutely = "";

static void record(const struct weir_stage *st, int shift)
{
	calls[strlen(calls)] = (char)(weir_stage_name(st)[0] + shift);
}

static int noting_init(struct weir_stage *st, struct weir_err *err)
{
	record(st, 0);
	CU_ASSERT_EQUAL((uintptr_t)weir_state(st) % WEIR_CACHE_LINE, 0);
	for (size_t i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(((const char *)weir_state(st))[i], 0);
	if (strcmp(weir_stage_name(st), fails_mutely) == 0)
		return WEIR_ENOMEM;
	if (strcmp(weir_stage_name(st), fails) != 0)
		return 0;
	snprintf(err->text, sizeof(err->text), "it is %s", "broken");
	snprintf(err->hint, sizeof(err->hint), "mend it");
	return WEIR_EINVAL;
}

static void noting_fini(struct weir_stage *st)
{
	record(st, 'A' - 'a');
}

static int no_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st;
	(void)err;
	return 0;
}

static void no_stop(struct weir_stage *st, int64_t until_ns)
{
	(void)st;
	(void)until_ns;
}

static const struct weir_outlet source_outlets[] = {
    {"out", &probe_type, true, "events"}, {.name = NULL}};

static const struct weir_stage_ops noting = {.abi = WEIR_STAGE_ABI,
    .name = "t.noting",
    .summary = "notes init and fini",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = 100,
    .init = noting_init,
    .fini = noting_fini,
    .handle = pass_handle};
static const struct weir_stage_ops noting_source = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.noting_source",
    .summary = "notes init and fini",
    .outlets = source_outlets,
    .state_size = 100,
    .init = noting_init,
    .start = no_start,
    .stop = no_stop,
    .fini = noting_fini};
static const struct weir_stage_ops single = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SINGLE,
    .name = "t.single",
    .summary = "runs in one thread at a time",
    .accepts = &probe_type,
    .handle = end_handle};

static void test_types(void)
{
	fixture_register(&noting);
	fixture_register(&noting_source);
	fixture_register(&single);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

/* ---- pools ---- */

static struct weir_stage_spec *add(struct weir_spec *spec, const char *name, const char *group)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, "t.end", NULL);

	if (group)
		weir_spec_text(&s->group, group);
	return s;
}

static struct pool *pool_of(struct weir_graph *g, const char *name)
{
	return weir_graph_stage(g, name)->pool;
}

/* The stages of a group share its pool, wherever they are in the configuration; each other one has
 * a pool of its own, and an inline stage has none. */
static void test_pools(void)
{
	struct weir_spec *spec = weir_spec_new("pools");

	weir_spec_add_group(spec, "g");
	weir_spec_add_group(spec, "h");
	add(spec, "alone", NULL);
	add(spec, "g1", "g");
	add(spec, "inline", NULL)->inlined = true;
	add(spec, "h1", "h");
	add(spec, "other", NULL);
	add(spec, "g2", "g");
	add(spec, "g3", "g");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(g->n_pools, 4);
	CU_ASSERT_STRING_EQUAL(pool_of(g, "g1")->name, "g");
	CU_ASSERT_PTR_EQUAL(pool_of(g, "g2"), pool_of(g, "g1"));
	CU_ASSERT_PTR_EQUAL(pool_of(g, "g3"), pool_of(g, "g1"));
	CU_ASSERT_STRING_EQUAL(pool_of(g, "h1")->name, "h");
	CU_ASSERT_STRING_EQUAL(pool_of(g, "alone")->name, "alone");
	CU_ASSERT_STRING_EQUAL(pool_of(g, "other")->name, "other");
	CU_ASSERT_PTR_NULL(pool_of(g, "inline"));
	CU_ASSERT_STRING_EQUAL(stage_view(g, "g3").placement, "group");
	CU_ASSERT_STRING_EQUAL(stage_view(g, "alone").placement, "pool");
	CU_ASSERT_STRING_EQUAL(stage_view(g, "inline").placement, "inline");
	/* every stage with a queue is served */
	prepare(6);
	weir_thread_attach(g, "test");
	static const char *const names[] = {"alone", "g1", "h1", "other", "g2", "g3"};
	for (int i = 0; i < 6; i++)
		fixture_offer_all(weir_graph_stage(g, names[i]), probes + i, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 6);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* The time after which a call counts as stuck is that of the threads that run the stage. */
static void test_stuck(void)
{
	struct weir_spec *spec = weir_spec_new("stuck");

	weir_spec_add_group(spec, "g");
	weir_spec_add_group(spec, "h");
	spec->groups[0].threads.stuck_ns = 11;
	spec->groups[1].threads.stuck_ns = 22;
	add(spec, "a", NULL)->threads.stuck_ns = 33;
	add(spec, "b", "h")->threads.stuck_ns = 44;
	add(spec, "c", "g")->threads.stuck_ns = 55;
	struct weir_graph *g = fixture_build(spec);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "a")->stuck_ns, 33);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "b")->stuck_ns, 22);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "c")->stuck_ns, 11);
	weir_graph_free(g);
}

/* ---- queues ---- */

static struct weir_graph *build_one(const char *use, const char *knob[], const char *value[])
{
	struct weir_spec *spec = weir_spec_new("queue");
	struct weir_stage_spec *s = fixture_stage(spec, "a", use, NULL);

	for (int i = 0; knob[i]; i++)
		fixture_set(s, knob[i], value[i]);
	return fixture_build(spec);
}

/* Check the queue of one stage with these knobs. */
static void check_queue(
    const char *use, const char *knob[], const char *value[], int parts, bool leasing, bool keyed)
{
	struct weir_graph *g = build_one(use, knob, value);
	const struct queue *q = &weir_graph_stage(g, "a")->sink.queue;

	CU_ASSERT_EQUAL(q->n_parts, parts);
	CU_ASSERT_EQUAL(q->leasing, leasing);
	CU_ASSERT_EQUAL(q->keyed, keyed);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "a")->sink.cohort_by_key, keyed);
	weir_graph_free(g);
}

#define LIST(...)                                                                                  \
	(const char *[])                                                                           \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void test_modes(void)
{
	check_queue("t.end", LIST("mode"), LIST("shared"), 1, false, false);
	check_queue("t.end", LIST("mode"), LIST("exclusive"), 1, true, false);
	check_queue("t.single", LIST("mode"), LIST("shared"), 1, true, false);
	check_queue("t.end", LIST("mode", "key", "threads.max"),
	    LIST("partitioned", "producer", "3"), 3, true, false);
	check_queue("t.end", LIST("mode", "key", "threads.max"),
	    LIST("partitioned", "producer", "64"), 64, true, false);
	check_queue("t.end", LIST("mode", "key", "threads.max"),
	    LIST("partitioned", "producer", "65"), 64, true, false);
	check_queue("t.end", LIST("mode", "threads.max"), LIST("shared", "3"), 1, false, false);
	check_queue("t.end", LIST("cohort.by"), LIST("producer"), 1, false, true);
}

static bool is_fifo(const char *policy, const char *discipline)
{
	struct weir_graph *g = build_one(
	    "t.end", LIST("admission.policy", "queue.discipline"), LIST(policy, discipline));
	bool fifo = weir_graph_stage(g, "a")->sink.queue.fifo;

	weir_graph_free(g);
	return fifo;
}

/* `auto` takes the oldest event first where the policy judges by waiting times. */
static void test_disciplines(void)
{
	CU_ASSERT_TRUE(is_fifo("none", "fifo"));
	CU_ASSERT_FALSE(is_fifo("none", "priority"));
	CU_ASSERT_FALSE(is_fifo("none", "auto"));
	CU_ASSERT_TRUE(is_fifo("codel", "fifo"));
	CU_ASSERT_FALSE(is_fifo("codel", "priority"));
	CU_ASSERT_TRUE(is_fifo("codel", "auto"));
}

/* An inline stage has no queue, but its limit applies to the events that it holds. */
static void test_inline(void)
{
	struct weir_spec *spec = weir_spec_new("inline");

	fixture_set(add(spec, "queued", NULL), "queue.limit", "7");
	fixture_set(add(spec, "inline", NULL), "queue.limit", "9");
	spec->stages[1].inlined = true;
	struct weir_graph *g = fixture_build(spec);
	const struct weir_stage *queued = weir_graph_stage(g, "queued");
	const struct weir_stage *inlined = weir_graph_stage(g, "inline");
	CU_ASSERT_EQUAL(atomic_load(&queued->sink.queue.limit), 7);
	CU_ASSERT_EQUAL(atomic_load(&inlined->sink.queue.limit), 9);
	CU_ASSERT_FALSE(queued->sink.inlined);
	CU_ASSERT_TRUE(inlined->sink.inlined);
	CU_ASSERT_PTR_NOT_NULL(queued->sink.look);
	CU_ASSERT_PTR_NULL(inlined->sink.look);
	weir_graph_free(g);
}

/* The objective of a stage is its own, else the shortest one of the classes. */
static void test_objectives(void)
{
	struct weir_spec *spec = weir_spec_new("slo");

	weir_spec_add_class(spec, "slow")->slo_ns = 900;
	weir_spec_add_class(spec, "fast")->slo_ns = 300;
	add(spec, "own", NULL)->slo_ns = 500;
	add(spec, "auto", NULL);
	struct weir_graph *g = fixture_build(spec);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "own")->sink.slo_ns, 500);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "auto")->sink.slo_ns, 300);
	weir_graph_free(g);
}

/* ---- lifecycle ---- */

/* z, a source, sends to b, b to c, and c to a; the configuration has another order. */
static struct weir_spec *chain(void)
{
	struct weir_spec *spec = weir_spec_new("chain");

	memset(calls, 0, sizeof(calls));
	fixture_stage(spec, "c", "t.noting", "a");
	fixture_stage(spec, "a", "t.noting", NULL);
	fixture_stage(spec, "z", "t.noting_source", "b");
	fixture_stage(spec, "b", "t.noting", "c");
	return spec;
}

/* Stages are initialised before those that send to them. Sources end first. */
static void test_order(void)
{
	struct weir_graph *g = fixture_build(chain());

	CU_ASSERT_STRING_EQUAL(calls, "acbz");
	weir_graph_free(g);
	CU_ASSERT_STRING_EQUAL(calls, "acbzZBCA");
}

/* One build reports all stages that cannot be initialised, and ends only the others. */
static void test_init_fails(void)
{
	struct weir_spec *spec = chain();
	struct weir_graph *g = NULL;
	struct weir_errs errs = {0};

	fails = "c";
	fails_mutely = "b";
	CU_ASSERT_NOT_EQUAL(weir_graph_build(spec, &g, &errs), 0);
	CU_ASSERT_PTR_NULL(g);
	CU_ASSERT_STRING_EQUAL(calls, "acbzZA");
	CU_ASSERT_EQUAL(errs.total, 2);
	CU_ASSERT_EQUAL(errs.err[0].code, WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(errs.err[0].text, "stage 'c' (t.noting): it is broken");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "mend it");
	CU_ASSERT_EQUAL(errs.err[1].code, WEIR_ENOMEM);
	CU_ASSERT_STRING_EQUAL(errs.err[1].text, "stage 'b' (t.noting): out of memory");
	CU_ASSERT_STRING_EQUAL(errs.err[1].hint, "");
	fails = fails_mutely = "";
	weir_spec_free(spec); /* the spec still belongs to the caller */
}

static void test_find(void)
{
	struct weir_graph *g = fixture_build(chain());

	CU_ASSERT_STRING_EQUAL(weir_stage_name(weir_graph_stage(g, "z")), "z");
	CU_ASSERT_PTR_NULL(weir_graph_stage(g, "y"));
	CU_ASSERT_STRING_EQUAL(weir_graph_spec(g)->name, "chain");
	weir_graph_free(g);
	weir_graph_free(NULL);
}

CUNIT_MAIN("build", {"types", test_types}, {"pools", test_pools}, {"stuck", test_stuck},
    {"modes", test_modes}, {"disciplines", test_disciplines}, {"inline", test_inline},
    {"objectives", test_objectives}, {"order", test_order}, {"init fails", test_init_fails},
    {"find", test_find})
