/* SPDX-License-Identifier: MIT */
/* Which stage of the old graph a stage replaces, whether all its work is unchanged, and which costs
 * it knows. Checked in the stage's start, where a stage may ask. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"

struct kin_conf {
	char *text;
	int64_t live;
};

static const struct weir_knob knobs[] = {{.name = "text",
					     .type = WEIR_KNOB_STRING,
					     .offset = offsetof(struct kin_conf, text),
					     .def = ""},
    {.name = "live",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct kin_conf, live),
	.def = "1",
	.flags = WEIR_KNOB_LIVE},
    {.name = NULL}};

/* Findings of each start. */
static struct seen {
	char name[16], before[16];
	bool unchanged;
} seen[64];
static int n_seen;
static bool refuses;

static int kin_start(struct weir_stage *st, struct weir_err *err)
{
	struct seen *s = &seen[n_seen++];
	const struct weir_stage *old = weir_predecessor(st, &s->unchanged);

	snprintf(s->name, sizeof(s->name), "%s", weir_stage_name(st));
	snprintf(s->before, sizeof(s->before), "%s", old ? weir_stage_name(old) : "");
	err->code = refuses ? WEIR_EBUSY : 0;
	return err->code;
}

static const struct weir_outlet outlets[] = {
    {"a", WEIR_ANY_EVENT, true, ""}, {"b", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};

#define KIN(ops, type, flag)                                                                       \
	static const struct weir_stage_ops ops = {.abi = WEIR_STAGE_ABI,                           \
	    .name = type,                                                                          \
	    .summary = "tells whom it follows",                                                    \
	    .flags = flag,                                                                         \
	    .accepts = &probe_type,                                                                \
	    .outlets = outlets,                                                                    \
	    .knobs = knobs,                                                                        \
	    .conf_size = sizeof(struct kin_conf),                                                  \
	    .start = kin_start,                                                                    \
	    .handle = end_handle}
KIN(kin_ops, "t.kin", 0);
KIN(other_ops, "t.other", 0);
KIN(source_ops, "t.source", WEIR_STAGE_SOURCE);

/** A chain: src -> one -> two -> three. The tests change single parts of it. */
static struct weir_spec *chain(void)
{
	static const char *const name[] = {"src", "one", "two", "three"};
	struct weir_spec *spec = weir_spec_new("kin");

	for (int i = 0; i < 4; i++) {
		struct weir_stage_spec *s =
		    weir_spec_add_stage(spec, name[i], i == 0 ? "t.source" : "t.kin");
		if (i < 3)
			weir_spec_link(s, "a", name[i + 1], false);
	}
	return spec;
}

static const struct seen *of(const char *name)
{
	for (int i = 0; i < n_seen; i++)
		if (strcmp(seen[i].name, name) == 0)
			return &seen[i];
	CU_FAIL_FATAL("it was not started");
	return NULL;
}

/* A graph of `spec` replaces one of `before`; both end. The findings are in `seen`. */
static void follow(struct weir_spec *before, struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	n_seen = 0;
	struct weir_graph *a = fixture_start(before), *b = fixture_build(spec);

	memset(seen, 0, sizeof(seen));
	n_seen = 0;
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(b, a, &errs), 0);
	finish_graph(a, 0);
	finish_graph(b, 0);
}

static bool kept(const char *name)
{
	return of(name)->unchanged && strcmp(of(name)->before, name) == 0;
}

static void test_same(void)
{
	follow(chain(), chain());
	CU_ASSERT_TRUE(kept("src") && kept("one") && kept("two") && kept("three"));
}

/* A fixed knob of one stage changes: that stage and all that lead to it differ, the stages after it
 * do not. Both values have the same length, so only their content differs. */
static void test_knob(void)
{
	struct weir_spec *a = chain(), *b = chain();

	fixture_set(&a->stages[2], "with.text", "abc");
	fixture_set(&b->stages[2], "with.text", "abd");
	follow(a, b);
	CU_ASSERT_FALSE(kept("src") || kept("one") || kept("two"));
	CU_ASSERT_TRUE(kept("three"));
	CU_ASSERT_STRING_EQUAL(of("two")->before, "two");
	b = chain();
	fixture_set(&b->stages[2], "with.live", "7");
	follow(chain(), b);
	CU_ASSERT_TRUE(kept("src") && kept("one") && kept("two") && kept("three"));
}

/* The target of an outlet, and which outlet it is. */
static void test_links(void)
{
	struct weir_spec *b = chain();

	weir_spec_text(&b->stages[1].to[0].outlet, "b");
	follow(chain(), b);
	CU_ASSERT_FALSE(kept("src") || kept("one"));
	CU_ASSERT_TRUE(kept("two") && kept("three"));
	b = chain();
	weir_spec_text(&b->stages[1].to[0].stage, "three");
	weir_spec_link(&b->stages[0], "b", "two", false);
	follow(chain(), b);
	CU_ASSERT_FALSE(kept("src") || kept("one"));
	CU_ASSERT_TRUE(kept("three"));
}

/* An equal name is not enough: a stage of another type replaces none, and the old stage's data is
 * not taken over. */
static void test_type(void)
{
	struct weir_spec *b = chain();

	weir_spec_text(&b->stages[2].use, "t.other");
	follow(chain(), b);
	CU_ASSERT_STRING_EQUAL(of("two")->before, "");
	CU_ASSERT_FALSE(of("two")->unchanged);
	CU_ASSERT_FALSE(kept("one"));
	CU_ASSERT_TRUE(kept("three"));
}

/* Renamed sources replace each other in order, each old one once. Other renamed stages replace
 * none. */
static void test_renamed(void)
{
	struct weir_spec *a = chain(), *b = chain();

	weir_spec_link(weir_spec_add_stage(a, "src2", "t.source"), "a", "three", false);
	weir_spec_link(weir_spec_add_stage(b, "new2", "t.source"), "a", "three", false);
	weir_spec_text(&b->stages[0].name, "new1");
	follow(a, b);
	CU_ASSERT_STRING_EQUAL(of("new1")->before, "src");
	CU_ASSERT_STRING_EQUAL(of("new2")->before, "src2");
	b = chain();
	weir_spec_text(&b->stages[3].name, "four");
	weir_spec_text(&b->stages[2].to[0].stage, "four");
	follow(chain(), b);
	CU_ASSERT_STRING_EQUAL(of("four")->before, "");
}

/* A graph that could not start has changed nothing: the old one accepts changes again, and another
 * graph may replace it. */
static void test_refused(void)
{
	n_seen = 0;
	struct weir_graph *a = fixture_start(chain()), *b = fixture_build(chain());
	struct weir_errs errs = {0};
	char why[200];

	n_seen = 0;
	refuses = true;
	CU_ASSERT_NOT_EQUAL(weir_graph_succeed(b, a, &errs), 0);
	refuses = false;
	weir_graph_free(b);
	CU_ASSERT_EQUAL(weir_graph_set(a, "one", "queue.limit", "50", why, sizeof(why)), 0);
	b = fixture_build(chain());
	n_seen = 0;
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(weir_graph_succeed(b, a, &errs), 0);
	finish_graph(a, 0);
	finish_graph(b, 0);
}

/* Costs are kept by class name, and only if the work is the same. */
static void test_costs(void)
{
	struct weir_spec *first = chain(), *second = chain();
	struct weir_errs errs = {0};

	weir_spec_add_class(first, "x")->n_match = 0;
	weir_spec_add_class(second, "y");
	fixture_set(&second->stages[2], "with.text", "otherwise");
	n_seen = 0;
	struct weir_graph *a = fixture_start(first), *b = fixture_build(second);
	sink_first_cost(&weir_graph_stage(a, "one")->sink, 7 * NS_PER_MS);
	sink_first_cost(&weir_graph_stage(a, "two")->sink, 7 * NS_PER_MS);
	atomic_store(&weir_graph_stage(a, "three")->sink.cost_ns[0], 3 * NS_PER_MS);
	atomic_store(&weir_graph_stage(a, "three")->sink.mean_cost_ns, 9 * NS_PER_MS);
	n_seen = 0;
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(b, a, &errs), 0);
	CU_ASSERT_EQUAL(sink_mean_cost_ns(&weir_graph_stage(b, "one")->sink), 7 * NS_PER_MS);
	CU_ASSERT_EQUAL(sink_mean_cost_ns(&weir_graph_stage(b, "two")->sink), 0);
	/* A new class starts with the mean cost of the stage, a class that existed keeps its
	 * own. */
	CU_ASSERT_EQUAL(sink_cost_ns(&weir_graph_stage(b, "three")->sink, 0), 9 * NS_PER_MS);
	/* The control thread of `b` knows a mean cost, and would overwrite this one. */
	struct weir_spec *third = chain(), *fourth = chain();
	weir_spec_add_class(third, "y");
	weir_spec_add_class(fourth, "y");
	struct weir_graph *d = fixture_start(fourth), *c = fixture_build(third);
	atomic_store(&weir_graph_stage(d, "three")->sink.cost_ns[0], 4 * NS_PER_MS);
	atomic_store(&weir_graph_stage(d, "three")->sink.mean_cost_ns, 9 * NS_PER_MS);
	n_seen = 0;
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(c, d, &errs), 0);
	CU_ASSERT_EQUAL(sink_cost_ns(&weir_graph_stage(c, "three")->sink, 0), 4 * NS_PER_MS);
	finish_graph(a, 0);
	finish_graph(b, 0);
	finish_graph(d, 0);
	finish_graph(c, 0);
}

static void test_prepare(void)
{
	weir_log_set_level(WEIR_LOG_ERROR);
	fixture_register(&kin_ops);
	fixture_register(&other_ops);
	fixture_register(&source_ops);
}

CUNIT_MAIN("graph kin", {"types are known", test_prepare}, {"all the same", test_same},
    {"a knob", test_knob}, {"links", test_links}, {"another type", test_type},
    {"other names", test_renamed}, {"one that does not start", test_refused}, {"costs", test_costs})
