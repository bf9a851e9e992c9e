/* SPDX-License-Identifier: MIT */
/* What weir_spec_check refuses, with its words: names, links, cycles, types, placement, budget. */
#include "fixture/graph_cunit.h"

static const struct weir_event_type other_type = {
    .name = "other", .size = sizeof(struct weir_event)};

static int no_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	return 0;
}

static const struct weir_outlet source_outlets[] = {
    {"event", &probe_type, false, ""}, {.name = NULL}};
static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.source",
    .summary = "x",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = source_outlets,
    .start = no_start};
static const struct weir_stage_ops other_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.other",
    .summary = "x",
    .accepts = &other_type,
    .handle = end_handle};

static struct weir_errs errs;

static bool said(const char *text)
{
	for (int i = 0; i < errs.n; i++)
		if (strstr(errs.err[i].text, text))
			return true;
	return false;
}

/* The check fails with exactly `n` errors, one of which says `text`. */
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
	struct weir_spec *spec = chain();

	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
	weir_spec_free(spec);
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
	refuses(spec, 1, "can not be the name of a stage");
	refuses(weir_spec_new("empty"), 1, "no stages");
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
	refuses(spec, 1, "stage 'b' (t.gate) can not be inline");
	spec = chain();
	spec->stages[2].inlined = true;
	spec->stages[2].mode = WEIR_MODE_EXCLUSIVE;
	refuses(spec, 1, "can not be inline");
	spec = chain();
	spec->stages[2].threads.min = 5;
	spec->stages[2].threads.max = 4;
	refuses(spec, 1, "min 5 is greater than max 4");
	spec = chain();
	spec->stages[1].threads.min = spec->stages[1].threads.max = 1000;
	refuses(spec, 1, "the budget of this machine");
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
	refuses(spec, 1, "a threshold of 33 can never act, since the queue ends at 32");
	/* The limit itself, and a number that the policy does not read, are no mistakes. */
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
	refuses(spec, 1, "there are 9 classes, at most 8");
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
	static const struct weir_stage_ops *const all[] = {
	    &source_ops, &other_ops, &pass_ops, &end_ops, &gate_ops};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fixture_register(all[i]);
	CU_ASSERT_PTR_EQUAL(weir_stage_type_find("t.source"), &source_ops);
}

CUNIT_MAIN("plan", {"types are known", test_prepare}, {"a good spec", test_good},
    {"names", test_names}, {"links", test_links}, {"cycles", test_cycles}, {"types", test_types},
    {"placement", test_placement}, {"admission", test_admission}, {"classes", test_classes},
    {"all mistakes at once", test_all_at_once})
