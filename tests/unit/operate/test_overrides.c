/* SPDX-License-Identifier: MIT */
/* Overrides of knobs: permanent and temporary values over the configured one, and how temporary
 * ones expire. */
#include "acts_rig.h"

#include <malloc.h>

#include "base/clock.h"
#include "operate/changes.h"

static void test_set_and_unset(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_FALSE(layers_of(g, "threads.max").overridden);
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "5", 0), 0);
	struct weir_override l = layers_of(g, "threads.max");
	CU_ASSERT_TRUE(l.overridden);
	CU_ASSERT_STRING_EQUAL(l.configured, "2");
	CU_ASSERT_STRING_EQUAL(l.override, "5");
	CU_ASSERT_EQUAL(l.expires_wall_ns, 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "7", 0), 0);
	CU_ASSERT_STRING_EQUAL(layers_of(g, "threads.max").configured, "2");
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "threads.max", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
	CU_ASSERT_EQUAL(newest(g).id, 3);
	CU_ASSERT_STRING_EQUAL(newest(g).what, "unset");
	CU_ASSERT_STRING_EQUAL(newest(g).target, "last.threads.max");
	CU_ASSERT_STRING_EQUAL(newest(g).from, "7");
	CU_ASSERT_STRING_EQUAL(newest(g).to, "2");
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "threads.max", why, sizeof(why)), WEIR_EBUSY);
	finished(g);
}

static void test_bad_values_leave_no_trace(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(set_for(g, "threads.max", "0", 0), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "1024")); /* the range */
	CU_ASSERT_EQUAL(set_for(g, "threads.mxa", "3", 0), WEIR_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "threads.max"));
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "3", -1), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "lats", "threads.max", "3", why, sizeof(why)), WEIR_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "'last'"));
	CU_ASSERT_FALSE(layers_of(g, "threads.max").overridden);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
	struct weir_change act;
	CU_ASSERT_EQUAL(weir_graph_changes(g, &act, 1), 0);
	finished(g);
}

struct own_conf {
	int64_t live, other, still;
};

static const struct weir_knob own_knobs[] = {{.name = "live",
						 .type = WEIR_KNOB_INT,
						 .offset = offsetof(struct own_conf, live),
						 .def = "1",
						 .flags = WEIR_KNOB_LIVE},
    {.name = "other",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct own_conf, other),
	.def = "3",
	.flags = WEIR_KNOB_LIVE},
    {.name = "still",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct own_conf, still),
	.def = "2"},
    {.name = NULL}};

static atomic_int handling, seen;
static atomic_bool kept;

/* A batch keeps the value that it started with. */
static void own_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct own_conf *conf = weir_conf(st);

	atomic_store(&seen, (int)conf->live);
	atomic_store(&handling, 1);
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	atomic_store(&kept, weir_conf(st) == conf);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops own_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.own",
    .summary = "has knobs of its own",
    .accepts = &probe_type,
    .flags = WEIR_STAGE_BLOCKS,
    .handle = own_handle,
    .knobs = own_knobs,
    .conf_size = sizeof(struct own_conf)};

/* Knobs of a stage's own type: live ones change, the others explain why they cannot. */
static void test_own_knobs(void)
{
	struct weir_spec *spec = weir_spec_new("own");

	fixture_stage(spec, "last", "t.own", NULL);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(set_for(g, "with.live", "5", 0), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "with.live"), "5");
	CU_ASSERT_EQUAL(set_for(g, "with.still", "5", 0), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "'still' of stage 'last' cannot change"));
	CU_ASSERT_STRING_EQUAL(value_of(g, "with.still"), "2");
	CU_ASSERT_EQUAL(set_for(g, "with.lvie", "5", 0), WEIR_ENOENT);
	CU_ASSERT_STRING_EQUAL(why, "'last' (t.own) has no knob 'lvie', did you mean 'with.live'?");
	CU_ASSERT_EQUAL(set_for(g, "with.other", "7", 0), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "with.live"), "5"); /* one set before is kept */
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "with.live", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "with.live"), "1");
	finish_graph(g, 0);
}

static void pass_own(struct weir_graph *g, int i)
{
	fixture_offer_all(weir_graph_stage(g, "last"), &probes[i], 1, 1);
	FIXTURE_AWAIT(atomic_load(&handling));
}

static void test_a_batch_keeps_its_values(void)
{
	struct weir_spec *spec = weir_spec_new("own");

	fixture_stage(spec, "last", "t.own", NULL);
	prepare(2);
	atomic_store(&probe_gate, 0);
	atomic_store(&handling, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	pass_own(g, 0);
	CU_ASSERT_EQUAL(set_for(g, "with.live", "5", 0), 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_TRUE(atomic_load(&kept));
	CU_ASSERT_EQUAL(atomic_load(&seen), 1);
	pass_own(g, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(atomic_load(&seen), 5);
	finished(g);
}

static void test_a_brief_value_ends(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "200", 3600 * NS_PER_S), 0);
	struct weir_override l = layers_of(g, "queue.limit");
	CU_ASSERT_STRING_EQUAL(l.override, "200");
	CU_ASSERT(l.expires_wall_ns > clock_wall_ns());
	graph_expire(g, clock_now_ns());
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "200");
	graph_expire(g, clock_now_ns() + 3601 * NS_PER_S);
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "100");
	CU_ASSERT_EQUAL(layers_of(g, "queue.limit").expires_wall_ns, 0);
	CU_ASSERT_STRING_EQUAL(newest(g).actor, "expiry");
	struct weir_change acts[3];
	CU_ASSERT_EQUAL(weir_graph_changes(g, acts, 3), 3);
	CU_ASSERT_TRUE(acts[1].undone);
	CU_ASSERT_FALSE(acts[2].undone);
	CU_ASSERT_EQUAL(atomic_load(&g->expires_ns), INT64_MAX);
	finished(g);
}

/* The control thread expires values as well. */
static void test_the_control_thread_ends_it(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "200", NS_PER_MS), 0);
	FIXTURE_AWAIT(!layers_of(g, "queue.limit").overridden);
	CU_ASSERT_STRING_NOT_EQUAL(value_of(g, "queue.limit"), "200");
	finished(g);
}

static int64_t ends_ns(struct weir_graph *g, const char *knob)
{
	struct owner of = owner_stage(weir_graph_stage(g, "last"));

	lock_take(&g->lock);
	int64_t until_ns = graph_override(g, &of, knob)->values.until_ns;
	lock_release(&g->lock);
	return until_ns;
}

/* The expiry of a value may be ruled out by values set meanwhile. The value then stays, and this is
 * recorded. */
static void test_an_end_that_is_refused(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(set_for(g, "threads.max", "8", 3600 * NS_PER_S), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.min", "4", 0), 0);
	graph_expire(g, clock_now_ns() + 3601 * NS_PER_S);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "8");
	CU_ASSERT_STRING_EQUAL(newest(g).what, "expire failed");
	CU_ASSERT_STRING_EQUAL(newest(g).from, "8");
	CU_ASSERT_STRING_EQUAL(newest(g).to, "2");
	struct weir_decision d;
	CU_ASSERT_EQUAL(weir_graph_decisions(g, &d, 1), 1);
	CU_ASSERT_STRING_EQUAL(d.rule, "threads.max cannot return to 2");
	CU_ASSERT_PTR_NOT_NULL(strstr(d.inputs, "threads.min 4 would be greater"));
	CU_ASSERT_TRUE(layers_of(g, "threads.max").stuck);
	int64_t until_ns = ends_ns(g, "threads.max");
	CU_ASSERT_TRUE(layers_of(g, "threads.max").overridden);
	uint64_t id = newest(g).id;
	for (int s = 3602; s < 3610; s++) /* retried, but recorded once */
		graph_expire(g, clock_now_ns() + s * NS_PER_S);
	CU_ASSERT_EQUAL(newest(g).id, id);
	CU_ASSERT_EQUAL(ends_ns(g, "threads.max"), until_ns);
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "threads.min", why, sizeof(why)), 0);
	graph_expire(g, clock_now_ns() + 3620 * NS_PER_S);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
	CU_ASSERT_FALSE(layers_of(g, "threads.max").overridden);
	finished(g);
}

/* Two values that depend on each other expire at the same time, in whichever order that is
 * possible. */
static void test_the_ends_of_a_pair(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_graph *g = started();
		CU_ASSERT_EQUAL(set_for(g, "queue.limit", "99", 3600 * NS_PER_S), 0);
		CU_ASSERT_EQUAL(set_for(g, "threads.max", "16", 3600 * NS_PER_S), 0);
		if (i) /* changes the order of the overrides */
			CU_ASSERT_EQUAL(
			    weir_graph_unset(g, "last", "queue.limit", why, sizeof(why)), 0);
		CU_ASSERT_EQUAL(set_for(g, "threads.min", "12", 3600 * NS_PER_S), 0);
		graph_expire(g, clock_now_ns() + 3601 * NS_PER_S);
		CU_ASSERT_FALSE(layers_of(g, "threads.max").overridden);
		CU_ASSERT_FALSE(layers_of(g, "threads.min").overridden);
		CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
		finished(g);
	}
}

/* The permanent value below a temporary one is reported, so that it can be saved. */
static void test_kept_beneath(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
	CU_ASSERT_FALSE(layers_of(g, "queue.limit").has_permanent);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "200", 3600 * NS_PER_S), 0);
	CU_ASSERT_TRUE(layers_of(g, "queue.limit").has_permanent);
	CU_ASSERT_STRING_EQUAL(layers_of(g, "queue.limit").permanent, "100");
	finished(g);
}

/* The undo of a value would restore a temporary one, which has expired: this undo counts for both,
 * and the next one goes on with the change before them. */
static void test_undo_past_an_expired_value(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "200", 1), 0); /* has expired when it is set */
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "300", 0), 0);
	CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "100");
	CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), 0);
	CU_ASSERT_FALSE(layers_of(g, "queue.limit").overridden);
	finished(g);
}

/* Texts are truncated between characters. */
static void test_cut(void)
{
	char buf[9];

	graph_cut(buf, sizeof(buf), "12345678");
	CU_ASSERT_STRING_EQUAL(buf, "12345678");
	graph_cut(buf, sizeof(buf), "123456789");
	CU_ASSERT_STRING_EQUAL(buf, "12345...");
	graph_cut(buf, sizeof(buf),
	    "1234\xc3\xa4"
	    "789");
	CU_ASSERT_STRING_EQUAL(buf, "1234...");
}

/* A graph with overridden knobs gives all its memory back. It is not started, so that no other
 * thread allocates. */
static void test_gives_memory_back(void)
{
	size_t before = 0;

	for (int i = 0; i < 20; i++) {
		before = i == 10 ? mallinfo2().uordblks : before; /* malloc's caches are filled */
		struct weir_graph *g = fixture_build(two_stages());
		CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
		CU_ASSERT_EQUAL(set_for(g, "cohort.max", "7", 0), 0);
		weir_graph_free(g);
	}
	/* 0 with a sanitizer, which finds leaks itself */
	CU_ASSERT_EQUAL(mallinfo2().uordblks, before);
}

static void test_prepare(void)
{
	fixture_register(&own_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("layers", {"types are known", test_prepare}, {"set and unset", test_set_and_unset},
    {"bad values leave no trace", test_bad_values_leave_no_trace},
    {"knobs of its own", test_own_knobs},
    {"a batch keeps its values", test_a_batch_keeps_its_values},
    {"a brief value ends", test_a_brief_value_ends},
    {"the control thread ends it", test_the_control_thread_ends_it},
    {"an end that is refused", test_an_end_that_is_refused},
    {"the ends of a pair", test_the_ends_of_a_pair}, {"kept beneath", test_kept_beneath},
    {"undo past an expired value", test_undo_past_an_expired_value}, {"cut", test_cut},
    {"gives its memory back", test_gives_memory_back})
