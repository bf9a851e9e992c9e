/* SPDX-License-Identifier: MIT */
/* What weir_spec_check refuses, and its messages: names, links, cycles, types, placement, budget,
 * classes, objectives. */
#include "fixture/graph/probes.h"
#include "plan_types.h"

#include "admission/admission.h"
#include "base/task.h"

static int64_t slow_ns(const void *conf)
{
	(void)conf;
	return 20000000;
}

static const struct weir_field two_fields[] = {
    {"x", probe_producer, ""}, {"y", probe_producer, ""}, {.name = NULL}};
/* A matcher: no event has a value that begins with "no". */
static bool no_no(const struct weir_field *field, const char *pattern, size_t n, bool prefix,
    char *hint, size_t size)
{
	(void)field, (void)prefix;
	snprintf(hint, size, "yes");
	return n < 2 || strncmp(pattern, "no", 2) != 0;
}

static const struct weir_event_type two_type = {.name = "two",
    .size = sizeof(struct probe),
    .finish = probe_finish,
    .fields = two_fields,
    .may_match = no_no};
static const struct weir_outlet two_outlets[] = {{"event", &two_type, false, ""}, {.name = NULL}};
static const struct weir_stage_ops two_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.two",
    .summary = "x",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = two_outlets,
    .start = plan_no_start};
static const struct weir_stage_ops any_ops = {
    .abi = WEIR_STAGE_ABI, .name = "t.any", .summary = "x", .handle = end_handle};
static const struct weir_stage_ops slow_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.slow",
    .summary = "x",
    .handle = end_handle,
    .service_ns = slow_ns};

static struct weir_errs errs;

static bool said(const char *text)
{
	for (int i = 0; i < errs.n; i++)
		if (strstr(errs.err[i].text, text))
			return true;
	return false;
}

/* The check fails with exactly `n` errors, one of which contains `text`. */
static void refuses(struct weir_spec *spec, int n, const char *text)
{
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_NOT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, n);
	CU_ASSERT_TRUE(said(text));
	if (errs.total != n || !said(text))
		for (int i = 0; i < errs.n; i++)
			fprintf(stderr, "  said: %s\n", errs.err[i].text);
	weir_spec_free(spec);
}

static void accepts(struct weir_spec *spec)
{
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
	weir_spec_free(spec);
}

static struct weir_spec *chain(void)
{
	struct weir_spec *spec = weir_spec_new("plan");

	fixture_stage(spec, "src", "t.source", "a");
	fixture_stage(spec, "a", "t.pass", "b");
	fixture_stage(spec, "b", "t.end", NULL);
	return spec;
}

static void test_good(void)
{
	accepts(chain());
}

static void test_names(void)
{
	struct weir_spec *spec = chain();

	fixture_stage(spec, "b", "t.end", NULL);
	refuses(spec, 1, "two stages called 'b'");
	spec = chain();
	weir_spec_text(&spec->stages[1].use, "t.pas");
	refuses(spec, 1, "no stage type 't.pas'");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "did you mean 't.pass'?");
	spec = chain();
	weir_spec_text(&spec->stages[2].name, "<img onerror=x>");
	weir_spec_text(&spec->stages[1].to[0].stage, "<img onerror=x>");
	refuses(spec, 1, "cannot be the name of a stage");
	refuses(weir_spec_new("empty"), 1, "no stages");
}

/* A pool has the name of its stage or group, so these names must differ. */
static void test_group_names(void)
{
	struct weir_spec *spec = chain();

	weir_spec_add_group(spec, "b")->mark =
	    (struct weir_mark){.file = "x.yaml", .line = 2, .col = 4};
	refuses(spec, 1, "group 'b' has the name of a stage");
	CU_ASSERT_TRUE(errs.err[0].line == 2 && errs.err[0].col == 4);
	spec = chain();
	weir_spec_add_group(spec, "g");
	weir_spec_add_group(spec, "g");
	refuses(spec, 1, "there are two groups called 'g'");
	spec = chain();
	weir_spec_add_group(spec, "<img onerror=x>");
	refuses(spec, 1, "cannot be the name of a group");
}

static struct weir_spec *long_chain(int n)
{
	struct weir_spec *spec = weir_spec_new("plan");
	char name[16], next[16] = "";

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		snprintf(next, sizeof(next), "s%d", i + 1);
		struct weir_stage_spec *s = fixture_stage(
		    spec, name, i + 1 < n ? "t.pass" : "t.end", i + 1 < n ? next : NULL);
		s->inlined = true;
		s->mark = (struct weir_mark){.file = "x.yaml", .line = i + 1, .col = 3};
	}
	return spec;
}

static void test_too_many_stages(void)
{
	struct weir_spec *spec = long_chain(WEIR_STAGES_MAX);

	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	weir_spec_free(spec);
	refuses(
	    long_chain(WEIR_STAGES_MAX + 1), 1, "there are 257 stages, at most 256 are allowed");
	CU_ASSERT_TRUE(errs.err[0].line == 257 && errs.err[0].col == 3);
}

static void test_links(void)
{
	struct weir_spec *spec = chain();

	weir_spec_text(&spec->stages[1].to[0].stage, "c");
	refuses(spec, 1, "links to 'c', which does not exist");
	spec = chain();
	weir_spec_link(&spec->stages[1], "side", "b", false);
	refuses(spec, 1, "has no outlet 'side'");
	spec = chain();
	weir_spec_link(&spec->stages[2], "", "a", false);
	refuses(spec, 1, "has no outlets");
	spec = chain();
	weir_spec_link(&spec->stages[1], "out", "b", false);
	refuses(spec, 1, "linked twice");
	spec = weir_spec_new("plan");
	fixture_stage(spec, "src", "t.source", NULL);
	fixture_stage(spec, "b", "t.end", NULL);
	refuses(spec, 1, "outlet 'event' of stage 'src' (t.source) must be linked");
	spec = chain();
	fixture_stage(spec, "lost", "t.end", NULL);
	refuses(spec, 1, "no source leads to stage 'lost'");
	spec = chain();
	weir_spec_link(&spec->stages[2], "", "src", false);
	weir_spec_text(&spec->stages[2].use, "t.pass");
	refuses(spec, 1, "which is a source and takes no events");
}

static void test_cycles(void)
{
	struct weir_spec *spec = chain();

	weir_spec_text(&spec->stages[2].use, "t.pass");
	weir_spec_link(&spec->stages[2], "", "a", false);
	refuses(spec, 1, "from 'b' to 'a' closes a cycle");
	spec = chain();
	weir_spec_text(&spec->stages[2].use, "t.pass");
	weir_spec_link(&spec->stages[2], "", "a", true);
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	spec->stages[1].inlined = spec->stages[2].inlined = true;
	refuses(spec, 1, "closes a cycle of inline stages");
}

static void test_types(void)
{
	struct weir_spec *spec = chain();

	weir_spec_text(&spec->stages[2].use, "t.other");
	refuses(spec, 1, "carries probe, but 'b' (t.other) takes other");
}

static void test_placement(void)
{
	struct weir_spec *spec = chain();

	weir_spec_text(&spec->stages[1].group, "nowhere");
	refuses(spec, 1, "is in group 'nowhere', which does not exist");
	CU_ASSERT_STRING_EQUAL(
	    errs.err[0].hint, "declare it at the top level: groups: { nowhere: {} }");
	spec = chain();
	weir_spec_text(&spec->stages[2].use, "t.gate");
	spec->stages[2].inlined = true;
	refuses(spec, 1, "stage 'b' (t.gate) cannot be inline");
	for (int i = 0; admission_at(i); i++) {
		spec = chain();
		spec->stages[2].inlined = true;
		spec->stages[2].admission.rate = 1;
		weir_spec_text(&spec->stages[2].admission.policy, admission_at(i)->name);
		if (admission_at(i)->queue)
			refuses(spec, 1, "cannot be inline");
		else
			accepts(spec);
	}
	spec = chain();
	spec->stages[2].threads.min = 5;
	spec->stages[2].threads.max = 4;
	refuses(spec, 1, "min 5 is greater than max 4");
	spec = chain();
	spec->stages[1].threads.min = spec->stages[1].threads.max = 1000;
	spec->stages[1].mark = (struct weir_mark){.file = "x.yaml", .line = 5, .col = 3};
	refuses(spec, 1,
	    "at least 1001 threads, stage 'a' 1000 of them, but the budget of this machine");
	CU_ASSERT_TRUE(errs.err[0].line == 5 && errs.err[0].col == 3);
	spec = chain();
	spec->stages[1].threads.max = spec->stages[1].threads.start = 1000;
	refuses(spec, 1,
	    "at least 1001 threads, stage 'a' 1000 of them, but the budget of this machine");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "lower 'threads.start', or share a group");
	spec = chain();
	spec->stages[0].mode = WEIR_MODE_EXCLUSIVE;
	refuses(spec, 1, "is a source");
	spec = chain();
	spec->stages[2].mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&spec->stages[2].key, "colour");
	refuses(spec, 1, "has no key 'colour'");
	spec = chain();
	spec->stages[2].mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&spec->stages[2].key, "producer");
	weir_spec_text(&spec->stages[2].cohort.by, "class");
	refuses(spec, 1, "partitioned by 'producer' and forms cohorts by 'class'");
	spec = chain();
	weir_spec_text(&spec->stages[2].threads.policy, "luck");
	refuses(spec, 1, "no policy 'luck'");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "there are static, seda, weir");
}

static void test_inline_hints(void)
{
	struct weir_spec *spec = chain();

	spec->stages[2].inlined = true;
	spec->stages[2].mode = WEIR_MODE_EXCLUSIVE;
	refuses(spec, 1, "cannot be inline");
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].hint, "only 'mode: shared' can run"));
	spec = chain();
	spec->stages[2].inlined = true;
	weir_spec_text(&spec->stages[2].use, "t.single"); /* `mode: shared` would not help */
	refuses(spec, 1, "stage 'b' (t.single) cannot be inline");
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].hint, "only one thread at a time may run"));
}

/* An inline stage that holds events needs a thread as well, and may be the only kind of stage. */
static void test_budget_of_inline_stages(void)
{
	int n = task_budget() + 1;
	char text[64];

	if (n >= WEIR_STAGES_MAX) /* this machine has a thread for each stage */
		return;
	struct weir_spec *spec = long_chain(n + 1);
	for (int i = 0; i < n; i++)
		weir_spec_text(&spec->stages[i].use, "t.keeps");
	snprintf(text, sizeof(text), "at least %d threads, stage 's0' 1 of them", n);
	refuses(spec, 1, text);
	CU_ASSERT_STRING_EQUAL(
	    errs.err[0].hint, "put some of the stages into a group, instead of 'threads: inline'");
	CU_ASSERT_TRUE(errs.err[0].line == 1 && errs.err[0].col == 3);
}

static void test_admission(void)
{
	struct weir_spec *spec = chain();

	weir_spec_text(&spec->stages[2].admission.policy, "hope");
	refuses(spec, 1, "no admission policy 'hope'");
	spec = chain();
	weir_spec_text(&spec->stages[2].admission.policy, "rate");
	refuses(spec, 1, "needs a rate");
	spec = chain();
	weir_spec_text(&spec->stages[2].admission.policy, "threshold");
	spec->stages[2].queue.limit = 32;
	spec->stages[2].admission.threshold = 33;
	refuses(spec, 1, "a threshold of 33 is above the limit of the queue, 32");
	/* A threshold equal to the limit, and a number that the policy does not read, are not
	 * mistakes. */
	spec = chain();
	weir_spec_text(&spec->stages[2].admission.policy, "threshold");
	spec->stages[2].queue.limit = spec->stages[2].admission.threshold = 32;
	spec->stages[1].admission.threshold = 1 << 20;
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	weir_spec_free(spec);
}

static void test_classes(void)
{
	struct weir_spec *spec = chain();

	for (int i = 0; i <= WEIR_CLASSES_MAX; i++) {
		char name[8];
		snprintf(name, sizeof(name), "c%d", i);
		weir_spec_add_class(spec, name);
	}
	refuses(spec, 8, "there are 9 classes, at most 8"); /* and 7 come after a catch-all */
	CU_ASSERT_TRUE(said("class 'c7' can match nothing: 'c0' before it takes"));
}

/* A class of `spec` with up to two conditions; NULL: none. */
static struct weir_class_spec *add_class(struct weir_spec *spec, const char *name,
    const char *field, const char *pattern, const char *field2, const char *pattern2)
{
	struct weir_class_spec *c = weir_spec_add_class(spec, name);

	c->match = calloc(2, sizeof(*c->match));
	for (const char *f = field; f; f = f == field ? field2 : NULL) {
		struct weir_match_spec *m = &c->match[c->n_match++];
		weir_spec_text(&m->field, f);
		weir_spec_text(&m->pattern, f == field ? pattern : pattern2);
	}
	return c;
}

/* A source whose events have two fields. */
static struct weir_spec *fed(void)
{
	struct weir_spec *spec = weir_spec_new("reach");

	fixture_stage(spec, "src", "t.two", "a");
	fixture_stage(spec, "a", "t.any", NULL);
	return spec;
}

static void test_reach(void)
{
	struct weir_spec *spec = fed();
	const char *behind = "class 'b' can match nothing: 'a' before it takes everything it could";

	/* Ordered from narrow to wide, with classes that overlap without including each other. */
	add_class(spec, "a", "x", "/shop/cart*", NULL, NULL);
	add_class(spec, "b", "x", "/shop/*", NULL, NULL);
	add_class(spec, "c", "x", "/shop", "y", "gold");
	add_class(spec, "d", "y", "gold", NULL, NULL);
	add_class(spec, "e", "x", "/shop", NULL, NULL);
	add_class(spec, "f", "x", "/sho*", "y", "iron");
	add_class(spec, "rest", NULL, NULL, NULL, NULL);
	accepts(spec);
	spec = fed();
	add_class(spec, "a", "x", "*", NULL, NULL); /* does not match events without x */
	add_class(spec, "b", "y", "1", NULL, NULL);
	accepts(spec);
	spec = fed();
	add_class(spec, "a", "x", "/a*", NULL, NULL);
	add_class(spec, "b", "x", "/a", "y", "1");
	refuses(spec, 1, behind);
	spec = fed();
	add_class(spec, "a", "x", "/a/*", "y", "1*");
	add_class(spec, "b", "y", "12", "x", "/a/b/*");
	refuses(spec, 1, behind);
	spec = fed();
	add_class(spec, "a", "x", "/a", NULL, NULL);
	add_class(spec, "b", "x", "/a*", NULL, NULL); /* wider */
	add_class(spec, "c", "x", "/a", NULL, NULL);
	refuses(spec, 1, "class 'c' can match nothing: 'a' before");
	spec = fed();
	add_class(spec, "a", "x", "no*", NULL, NULL);
	refuses(spec, 1, "class 'a' can match nothing: no two has the x 'no*'");
	/* A graph that its program feeds: the program may set classes without using the
	 * patterns. */
	spec = weir_spec_new("program");
	fixture_stage(spec, "a", "t.end", NULL);
	weir_spec_add_class(spec, "c0");
	weir_spec_add_class(spec, "c1");
	accepts(spec);
}

static void test_shares(void)
{
	struct weir_spec *spec = fed();

	add_class(spec, "a", "x", "/a", NULL, NULL)->priority = 3;
	add_class(spec, "b", "x", "/b", NULL, NULL)->priority = 3;
	add_class(spec, "c", "x", "/c", NULL, NULL)->guarantee = 0.5;
	accepts(spec);
	spec = fed();
	add_class(spec, "a", "x", "/a", NULL, NULL)->priority = 3;
	add_class(spec, "b", "x", "/b", NULL, NULL);
	add_class(spec, "c", "x", "/c", NULL, NULL)->priority = 3;
	refuses(spec, 1, "class 'c' has priority 3, but comes after 'b' with 4");
	spec = fed();
	for (int i = 0; i < 6; i++) {
		const char *name = (const char *[]){"a", "b", "c", "d", "e", "f"}[i];
		add_class(spec, name, "x", name, NULL, NULL)->guarantee =
		    0.1; /* the limit is 50 %: 5 of them */
	}
	refuses(spec, 1, "the classes are guaranteed 60% of each stage in total, at most 50%");
	spec = fed();
	for (int i = 0; i < 5; i++) {
		const char *name = (const char *[]){"a", "b", "c", "d", "e"}[i];
		add_class(spec, name, "x", name, NULL, NULL)->guarantee = 0.1;
	}
	accepts(spec);
}

/* Objectives: t.slow reports 20 ms. */
static void test_slo(void)
{
	struct weir_spec *spec = fed();
	struct weir_mark there = {.file = "x.yaml", .line = 7, .col = 3};
	const char *below =
	    "the objective of stage 'a' is 19.999ms, but one event alone takes 20ms there";

	weir_spec_text(&spec->stages[1].use, "t.slow");
	spec->stages[1].slo_ns = 20000000;
	spec->stages[1].slo_mark = there;
	accepts(spec);
	spec = fed();
	weir_spec_text(&spec->stages[1].use, "t.slow");
	spec->stages[1].slo_ns = 19999000;
	spec->stages[1].slo_mark = there;
	refuses(spec, 1, below);
	CU_ASSERT_TRUE(errs.err[0].line == 7 && errs.err[0].col == 3);
	/* An objective that is not from a file is not a mistake. */
	spec = fed();
	weir_spec_text(&spec->stages[1].use, "t.slow");
	add_class(spec, "c", NULL, NULL, NULL, NULL)->slo_ns = 19999000;
	accepts(spec);
	/* The most generous class counts, if all classes have an objective. */
	for (int i = 0; i < 3; i++) {
		spec = fed();
		weir_spec_text(&spec->stages[1].use, "t.slow");
		struct weir_class_spec *c = add_class(spec, "c", "x", "1", NULL, NULL);
		c->slo_ns = 1000000;
		c->slo_mark = there;
		c = add_class(spec, "d", NULL, NULL, NULL, NULL);
		c->slo_ns = i == 0 ? 20000000 : 19000000;
		if (i < 2)
			c->slo_mark = there;
		if (i == 1)
			refuses(spec, 1, "the longest objective is 19ms, of class 'd', but");
		else
			accepts(spec);
	}
}

static void test_all_at_once(void)
{
	struct weir_spec *spec = chain();

	weir_spec_text(&spec->stages[1].to[0].stage, "c");
	weir_spec_text(&spec->stages[2].use, "t.edn");
	spec->stages[1].threads.min = 3;
	spec->stages[1].threads.max = 2;
	weir_spec_text(&spec->stages[1].group, "");
	refuses(spec, 3, "min 3 is greater than max 2");
}

static void test_prepare(void)
{
	static const struct weir_stage_ops *const all[] = {&plan_source_ops, &plan_other_ops,
	    &pass_ops, &end_ops, &gate_ops, &two_ops, &any_ops, &slow_ops, &plan_keeps_ops,
	    &plan_single_ops};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fixture_register(all[i]);
	CU_ASSERT_PTR_EQUAL(weir_stage_type_find("t.source"), &plan_source_ops);
}

CUNIT_MAIN("plan", {"types are known", test_prepare}, {"a good spec", test_good},
    {"names", test_names}, {"too many stages", test_too_many_stages},
    {"a group named like a stage", test_group_names}, {"links", test_links},
    {"cycles", test_cycles}, {"types", test_types}, {"placement", test_placement},
    {"hints about inline stages", test_inline_hints},
    {"budget of inline stages", test_budget_of_inline_stages}, {"admission", test_admission},
    {"classes", test_classes}, {"reach", test_reach}, {"shares", test_shares},
    {"objectives", test_slo}, {"all mistakes at once", test_all_at_once})
