/* SPDX-License-Identifier: MIT */
/* Keys of groups: the forms of `cores`, --set, what a file says after `weir save`, and which changes
 * are live. */
#include "diff.h"
#include "loading.h"

#define STAGES                                                                                     \
	"stages: { web: { use: t.source, with: { listen: a }, to: w }, w: { use: t.work } }\n"

static struct weir_spec *load_group(const char *group, const char *const *sets, int n)
{
	char text[400];

	snprintf(text, sizeof(text), "weir: 1\ngroups: { core: %s, core.x: {} }\n" STAGES, group);
	write_file("main.yaml", text);
	return load_path("main.yaml", sets, n);
}

static void check_cores(const char *cores, const char *want, const char *policy)
{
	char group[200];

	snprintf(group, sizeof(group), "{ schedule: fifo, cores: %s }", cores);
	struct weir_spec *spec = load_group(group, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL(spec);
	if (!spec) {
		fprintf(stderr, "%s", loading_said());
		return;
	}
	CU_ASSERT_STRING_EQUAL(spec->groups[0].cores, want);
	CU_ASSERT_STRING_EQUAL(spec->groups[0].threads.policy, policy);
	CU_ASSERT_EQUAL(
	    spec->groups[0].threads.policy_mark.file != NULL, strstr(cores, "policy") != NULL);
	weir_spec_free(spec);
}

static void test_cores(void)
{
	const char *folder = enter_folder();

	check_cores("auto", "auto", "weir");
	check_cores("3", "3", "weir");
	check_cores("\"0-3,6\"", "0-3,6", "weir");
	check_cores("{ min: 2, max: 8 }", "2..8", "weir");
	check_cores("{ max: 8, policy: seda }", "1..8", "seda");
	check_cores("{ min: 2 }", "2..auto", "weir");
	check_cores("{}", "1..auto", "weir");
	CU_ASSERT_PTR_NULL(load_group("{ cores: { min: 0 } }", NULL, 0));
	CU_ASSERT_PTR_NOT_NULL(strstr(loading_said(), "main.yaml:2:"));
	CU_ASSERT_PTR_NULL(load_group("{ cores: { mix: 1 } }", NULL, 0));
	CU_ASSERT_PTR_NOT_NULL(strstr(loading_said(), "did you mean 'min'"));
	leave_folder(folder);
}

static void test_set(void)
{
	static const char *const sets[] = {"core.gate.time=10ms", "core.x.starve=5ms",
	    "core.schedule=srpt", "core.cores=1..2", "w.slo=1s"};
	const char *folder = enter_folder();
	struct weir_spec *spec = load_group("{}", sets, 5);

	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_EQUAL(spec->groups[0].gate.time_ns, 10000000);
	CU_ASSERT_EQUAL(spec->groups[1].starve_ns, 5000000);
	CU_ASSERT_STRING_EQUAL(spec->groups[0].schedule, "srpt");
	CU_ASSERT_STRING_EQUAL(spec->groups[0].cores, "1..2");
	weir_spec_free(spec);
	static const char *const wrong[][2] = {{"core.stave=1ms", "did you mean 'starve'"},
	    {"core.gate.tim=1ms", "did you mean 'time'"}, {"core.starve=1", "needs a unit"},
	    {"core.gate..x=1", "is not the path of a knob"}, {"cor.starve=1ms", "no such stage"}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_PTR_NULL(load_group("{}", &wrong[i][0], 1));
		CU_ASSERT_PTR_NOT_NULL(strstr(loading_said(), wrong[i][1]));
		if (!strstr(loading_said(), wrong[i][1]))
			fprintf(stderr, "  %s", loading_said());
	}
	leave_folder(folder);
}

static void test_edit(void)
{
	static const struct config_change change[] = {{"core", "gate.time", "10ms", false},
	    {"core", "cores", "2..8", false}, {"w", "slo", "1s", false}};
	const char *folder = enter_folder();
	struct weir_errs errs = {0};
	char *text = NULL;
	size_t n;

	write_file("main.yaml", "groups: { core: { cores: 1 } }\nstages: { w: { use: x } }\n");
	CU_ASSERT_EQUAL_FATAL(config_edit("main.yaml", change, 3, &text, &n, &errs), 0);
	CU_ASSERT_STRING_EQUAL(text, "groups: { core: { cores: 2..8, gate: { time: 10ms } } }\n"
				     "stages: { w: { use: x, slo: 1s } }\n");
	free(text);
	leave_folder(folder);
}

/* `cores` of a map becomes a value, or a map of a range with its policy; other lines stay. */
static void test_edit_map(void)
{
	static const char *const row[][3] = {/* before, value, after */
	    {"core: { cores: { min: 1, max: 2 }, starve: 0 }", "1",
		"core: { cores: 1, starve: 0 }"},
	    {"core: { cores: {min: 1, max: 2, policy: seda} }", "2..8",
		"core: { cores: { min: 2, max: 8, policy: seda } }"},
	    {"core: { cores: { policy: seda } } # x", "1", "core: { cores: 1 } # x"},
	    {"core: { cores: {} }", "2..auto", "core: { cores: { min: 2, max: auto } }"},
	    {"core: { cores: { max: 8 } }", "auto", "core: { cores: auto }"},
	    {"core:\n    cores:\n      min: 1\n      max: 2 # why\n    starve: 0", "1",
		"core:\n    cores: 1 # why\n    starve: 0"},
	    {"core:\n    starve: 0\n    cores:\n      max: 2\n      policy: 'seda'", "1..3",
		"core:\n    starve: 0\n    cores: { min: 1, max: 3, policy: seda }"},
	    {"core:\n    cores:   {\n      min: 1 }\n    starve: 0", "3",
		"core:\n    cores: 3\n    starve: 0"},
	    {"core: { cores: { min: 1, # why\n max: 2 } }", "1", NULL},
	    {"core:\n    cores: # why\n      min: 1", "1", NULL},
	    {"core: { cores: { max: \"${N:-2}\" } }", "1", NULL}};
	const char *folder = enter_folder();
	static char before[400], after[400];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct config_change change = {"core", "cores", row[i][1], false};
		struct weir_errs errs = {0};
		char *text = NULL;
		size_t n;
		snprintf(before, sizeof(before), "groups:\n  %s\n", row[i][0]);
		write_file("main.yaml", before);
		int rc = config_edit("main.yaml", &change, 1, &text, &n, &errs);
		CU_ASSERT_EQUAL(rc == 0, row[i][2] != NULL);
		if (rc == 0) {
			snprintf(after, sizeof(after), "groups:\n  %s\n", row[i][2]);
			CU_ASSERT_STRING_EQUAL(text, after);
			if (strcmp(text, after) != 0)
				fprintf(stderr, "expected\n%sbut found\n%s", after, text);
		} else {
			CU_ASSERT_PTR_NOT_NULL(strstr(
			    errs.err[0].hint, i < 10 ? "write 'cores: 1' by hand" : "variable"));
		}
		free(text);
	}
	leave_folder(folder);
}

/* A policy resizes ranges, so it ends with the range; a boolean has no quotes. */
static void test_map_is_set(void)
{
	static const char *const sets[] = {"core.cores=1"}, *const range[] = {"core.cores=1..3"};
	static const struct config_change plain = {"core", "balance", "false", true};
	const char *folder = enter_folder();
	struct weir_errs errs = {0};
	char *text = NULL;
	size_t n;

	struct weir_spec *spec = load_group("{ cores: { max: 2, policy: seda } }", sets, 1);
	CU_ASSERT_STRING_EQUAL(spec->groups[0].threads.policy, "weir");
	CU_ASSERT_PTR_NULL(spec->groups[0].threads.policy_mark.file);
	weir_spec_free(spec);
	spec = load_group("{ cores: { max: 2, policy: seda } }", range, 1);
	CU_ASSERT_STRING_EQUAL(spec->groups[0].threads.policy, "seda");
	weir_spec_free(spec);
	write_file("main.yaml", "groups: { core: { balance: true } }\n");
	CU_ASSERT_EQUAL_FATAL(config_edit("main.yaml", &plain, 1, &text, &n, &errs), 0);
	CU_ASSERT_STRING_EQUAL(text, "groups: { core: { balance: false } }\n");
	free(text);
	leave_folder(folder);
}

/* The effect of a change of one key of a group; another group's name begins with its name. */
static enum config_effect effect(const char *knob, const char *from, const char *to)
{
	struct config_diff d;
	char text[2][200];

	for (int i = 0; i < 2; i++) {
		const char *value = i == 0 ? from : to;
		bool schedule = strcmp(knob, "schedule") == 0;
		int n = snprintf(text[i], sizeof(text[i]),
		    "groups.core.schedule %s\ngroups.core.x.schedule %s\n",
		    schedule ? "fifo" : "shared", schedule ? value : "fifo");
		if (!schedule)
			snprintf(text[i] + n, sizeof(text[i]) - (size_t)n, "groups.core.x.%s %s\n",
			    knob, value);
	}
	CU_ASSERT_EQUAL_FATAL(config_diff(text[0], text[1], &d), 0);
	CU_ASSERT_EQUAL_FATAL(d.n, 1);
	enum config_effect e = d.item[0].effect;
	CU_ASSERT_EQUAL(d.live, e == CONFIG_LIVE);
	config_diff_free(&d);
	return e;
}

static void test_diff(void)
{
	types_register();
	CU_ASSERT_EQUAL(effect("gate.time", "0", "1ms"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("gate.events", "0", "1"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("gate.cutoff", "0", "1ms"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("starve", "0", "1ms"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("balance", "true", "false"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("threads.max", "1", "2"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("threads.policy", "weir", "seda"), CONFIG_REBUILD);
	CU_ASSERT_EQUAL(effect("order", "arrival", "newest"), CONFIG_REBUILD);
	CU_ASSERT_EQUAL(effect("visit", "a", "b"), CONFIG_REBUILD);
	CU_ASSERT_EQUAL(effect("cores", "1", "2..8"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("cores", "1", "\"0-3\""), CONFIG_REBUILD);
	CU_ASSERT_EQUAL(effect("cores", "\"1,2\"", "auto"), CONFIG_REBUILD);
	CU_ASSERT_EQUAL(effect("schedule", "fifo", "srpt"), CONFIG_LIVE);
	CU_ASSERT_EQUAL(effect("schedule", "fifo", "shared"), CONFIG_REBUILD);
	CU_ASSERT_EQUAL(effect("schedule", "shared", "color"), CONFIG_REBUILD);
}

CUNIT_MAIN("group keys", {"cores", test_cores}, {"set", test_set}, {"edit", test_edit},
    {"edit map", test_edit_map}, {"map is set", test_map_is_set}, {"diff", test_diff})
