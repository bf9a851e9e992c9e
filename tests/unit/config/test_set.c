/* SPDX-License-Identifier: MIT */
/* Overrides on the command line: stage.knob=value. */
#include "loading.h"

static struct weir_spec *load_with(const char *set)
{
	return load_path("main.yaml", &set, 1);
}

static const char *refused(const char *set)
{
	struct weir_spec *spec = load_with(set);

	CU_ASSERT_PTR_NULL(spec);
	weir_spec_free(spec);
	return loading_said();
}

static const char *set_up(void)
{
	const char *folder = enter_folder();

	write_file("main.yaml", "weir: 1\n"
				"stages:\n"
				"  web: { use: t.source, with: { listen: a }, to: w }\n"
				"  w: { use: t.work, threads: inline, with: { size: 1MB } }\n"
				"  w.x: { use: t.work }\n");
	return folder;
}

static void test_values(void)
{
	const char *sets[] = {"w.threads.max=8", "w.with.size=2MB", "w.with.limit.rate=5",
	    "w.x.queue.limit=3", "web.with.listen=b=c", "w.x.threads=4",
	    "w.x.admission.policy=none", "w.x.threads.policy=seda", "w.x.cohort.policy=static",
	    "w.x.width.policy=static"};

	const char *folder = set_up();
	struct weir_spec *spec = load_path("main.yaml", sets, sizeof(sets) / sizeof(sets[0]));
	if (!spec)
		fprintf(stderr, "%s", loading_said());
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	const struct weir_stage_spec *w = stage_of(spec, "w"), *x = stage_of(spec, "w.x");
	CU_ASSERT_TRUE(w->threads.max == 8 && !w->inlined);
	CU_ASSERT_STRING_EQUAL(weir_node_get(w->with, "size")->text, "2MB");
	CU_ASSERT_STRING_EQUAL(weir_node_get(weir_node_get(w->with, "limit"), "rate")->text, "5");
	CU_ASSERT_TRUE(x->queue.limit == 3 && x->threads.min == 4 && x->threads.max == 4);
	CU_ASSERT_STRING_EQUAL(x->threads.mark.file, "--set"); /* the location of the override */
	CU_ASSERT_STRING_EQUAL(x->threads.policy_mark.file, "--set");
	CU_ASSERT_STRING_EQUAL(x->admission.policy_mark.file, "--set");
	CU_ASSERT_STRING_EQUAL(x->cohort.policy_mark.file, "--set");
	CU_ASSERT_STRING_EQUAL(x->width.policy_mark.file, "--set");
	CU_ASSERT_PTR_NULL(w->threads.mark.file);
	CU_ASSERT_PTR_NULL(w->admission.policy_mark.file);
	CU_ASSERT_STRING_EQUAL(weir_node_get(stage_of(spec, "web")->with, "listen")->text, "b=c");
	weir_spec_free(spec);
	leave_folder(folder);
}

static void test_refused(void)
{
	const char *folder = set_up();
	CU_ASSERT_STRING_EQUAL(
	    refused("w.queue.limit=0"), "--set: w.queue.limit=0: '0' is too small: at least 1\n");
	CU_ASSERT_STRING_EQUAL(refused("v.slo=1s"), "--set: v.slo=1s: there is no such stage\n");
	CU_ASSERT_STRING_EQUAL(refused("w.slow=1s"),
	    "--set: w.slow=1s: stage 'w' has no knob 'slow': did you mean 'slo'?\n");
	CU_ASSERT_STRING_EQUAL(refused("web.max_connections=5"),
	    "--set: web.max_connections=5: stage 'web' has no knob 'max_connections': did you mean "
	    "'with.max_connections'?\n");
	CU_ASSERT_STRING_EQUAL(refused("web.max_conections=5"),
	    "--set: web.max_conections=5: stage 'web' has no knob 'max_conections': did you mean "
	    "'with.max_connections'?\n");
	CU_ASSERT_STRING_EQUAL(refused("w.slo"), "--set: w.slo: write STAGE.KNOB=VALUE\n");
	CU_ASSERT_STRING_EQUAL(refused("w=5"), "--set: w=5: there is no such stage\n");
	CU_ASSERT_STRING_EQUAL(refused("=5"), "--set: =5: there is no such stage\n");
	CU_ASSERT_STRING_EQUAL(refused("w.with.time=10"),
	    "'time' of 'with' of stage 'w' (t.work): '10' needs a unit: write 10ms or 10s\n");
	CU_ASSERT_STRING_EQUAL(refused("w.with.tine=10ms"),
	    "unknown key 'tine' in 'with' of stage 'w' (t.work): did you mean 'time'?\n");
	leave_folder(folder);
}

/* The threads of a stage in a group are those of the group. */
static void test_threads_in_a_group(void)
{
	const char *folder = enter_folder();
	write_file("main.yaml", "weir: 1\n"
				"groups: { g: {} }\n"
				"stages:\n"
				"  web: { use: t.source, with: { listen: a }, to: w }\n"
				"  w: { use: t.work, group: g }\n");
	CU_ASSERT_STRING_EQUAL(refused("w.threads.max=3"),
	    "--set: w.threads.max=3: the stage is in a group, and uses the threads of the group\n");
	CU_ASSERT_STRING_EQUAL(refused("w.threads=3"),
	    "--set: w.threads=3: the stage is in a group, and uses the threads of the group\n");
	struct weir_spec *spec = load_with("w.queue.limit=3");
	CU_ASSERT_PTR_NOT_NULL(spec);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* An override can correct a mistake in the file. */
static void test_mends(void)
{
	const char *folder = enter_folder();
	write_file("main.yaml", "weir: 1\n"
				"stages:\n"
				"  web: { use: t.source, to: w }\n"
				"  w: { use: t.work }\n");
	CU_ASSERT_PTR_NULL(load_path("main.yaml", NULL, 0));
	struct weir_spec *spec = load_with("web.with.listen=a");
	CU_ASSERT_PTR_NOT_NULL(spec);
	weir_spec_free(spec);
	leave_folder(folder);
}

CUNIT_MAIN("set", {"values", test_values}, {"refused", test_refused},
    {"threads in a group", test_threads_in_a_group}, {"mends", test_mends})
