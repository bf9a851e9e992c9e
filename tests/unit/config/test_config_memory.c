/* SPDX-License-Identifier: MIT */
/* Every call of config.h and diff.h gives all its memory back, whether it succeeds or fails. */
#include "diff.h"
#include "fixture/memory/counted.h"
#include "full_type.h"
#include "loading.h"

static const char main_yaml[] =
    "weir: 1\n"
    "include: [more.yaml, 'n*.yaml']\n"
    "name: shop\n"
    "user: nobody\n"
    "admin: { listen: 127.0.0.1:1, hosts: [a, b], history: { file: h }, tls: { cert: c, key: k },\n"
    "         tokens: { t: { file: f } }, users: { u: {} } }\n"
    "trace: { otlp: http://127.0.0.1:1 }\n"
    "log: { file: stdout }\n"
    "defaults: { threads: { max: 3 }, queue: { limit: 9 } }\n"
    "classes: { a: { match: { path: /a*, method: GET }, slo: 1s }, b: {} }\n"
    "groups: { g: { threads: 2, schedule: shared } }\n"
    "alerts: { top_class_shed: { stages: { w: { enabled: false } } } }\n"
    "stages:\n"
    "  web: { use: t.source, with: { listen: \"a${WEIR_TEST_UNSET:-b}\" }, to: w }\n"
    "  w: { use: t.work, to: { next: s, miss: { stage: w, loop: true } },\n"
    "       with: { root: ., names: [a, b], limits: [{ path: x }, { path: y, rate: 5 }] } }\n";

/* One mistake of each kind, some of them in sections that the loader must then leave. */
static const char *const wrong[] = {"weir: 2\n", "weir: 1\nstages: [\n", "weir: 1\nweir: 1\n",
    "weir: 1\nstages: { a: { use: t.sink, use: { a: [b] } } }\n",
    "weir: 1\nstages: { a: &x { use: t.sink }, *x : 1 }\n", "weir: 1\nstages: { a: *x }\n",
    "weir: 1\nstages: { [a]: 1 }\n", "weir: 1\nstages: { <<: { a: 1 } }\n",
    "weir: 1\nstages: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", "",
    "a: b\n--- c\n", "a: \"\\x00\"\n", "weir: 1\ninclude: [gone.yaml, main.yaml, main.yaml, .]\n",
    "weir: 1\nname: \"${WEIR_TEST_UNSET} ${} ${WEIR_TEST_UNSET:-x}\"\n",
    "weir: 1\nname: [a]\nuser: {}\nadmin: { tokens: { drain: 1, a: { file: [] } }, users: [], x: 1 "
    "}\n",
    "weir: 1\nplugin: [gone.so, {}, '']\nstages: {}\n",
    "weir: 1\nclasses: { a: { match: { path: [], x: a*b }, y: 1 }, b: 1, 'c d': {} }\nstages: {}\n",
    "weir: 1\nclasses: [a]\ngroups: { a: 1, b: { x: 1 } }\nstages: { w: 1, v: { use: [] } }\n",
    "weir: 1\ndefaults: { use: a, slo: x, threads: y }\nstages: { w: { use: t.work } }\n",
    "weir: 1\nalerts: { x: 1, stage_stuck: { stages: { v: {} , w: 1 }, y: 1 } }\n"
    "stages: { w: { use: t.work, with: { slo: 1s, x: 1, limits: [{}], names: [[a]] } } }\n",
    "weir: 1\nstages: { w: { use: t.work, with: 1, to: { next: {}, miss: [] }, threads: x, y: 1 "
    "},\n"
    "                  v: { use: t.work, to: [], group: {} } }\n"};

static const char *const sets[] = {"w.with.size=2MB", "w.with.limit.rate=9", "s.threads=2"};
static const char *const bad_sets[] = {"w", "v.slo=1s", "w.slow=1s", "w.with.time=5", "w.slo=x"};

static void load(void)
{
	weir_spec_free(load_path("main.yaml", sets, 3));
	weir_spec_free(load_path("main.yaml", bad_sets, 5));
	weir_spec_free(load_path("gone.yaml", NULL, 0));
}

static void load_wrong(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_file("wrong.yaml", wrong[i]);
		CU_ASSERT_PTR_NULL(load_path("wrong.yaml", NULL, 0));
		CU_ASSERT_PTR_NULL(load_text(wrong[i]));
	}
}

static void look(void)
{
	struct weir_spec *spec = NULL;
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL(config_look("main.yaml", sets, 3, &spec, &errs), 0);
	weir_spec_free(spec);
	CU_ASSERT_EQUAL(config_load_plugins("main.yaml", &errs), 0);
	write_file("wrong.yaml", "weir: 1\nplugin: [gone.so, other.so]\n");
	CU_ASSERT_EQUAL(config_load_plugins("wrong.yaml", &errs), WEIR_EINVAL);
}

static void count(void *arg, const struct config_said *said)
{
	*(size_t *)arg += strlen(said->path);
}

static void print(void)
{
	struct weir_spec *spec = load_path("main.yaml", sets, 3);
	const char *name;
	char *text = NULL;
	size_t n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	FILE *out = fopen("/dev/null", "w");
	CU_ASSERT_EQUAL(config_explain(spec, NULL, out), 0);
	CU_ASSERT_EQUAL(config_explain(spec, "stages.none", out), WEIR_ENOENT);
	CU_ASSERT_EQUAL(config_values(spec, out), 0);
	CU_ASSERT_EQUAL(config_said(spec, count, &n), 0);
	CU_ASSERT_EQUAL(config_graph(spec, "dot", out), 0);
	for (int i = 0; config_text(spec, i, &name, &text) == 0; i++)
		free(text);
	free(config_values_text(spec));
	weir_spec_free(spec);
	fclose(out);
}

static void describe(void)
{
	FILE *out = fopen("/dev/null", "w");

	CU_ASSERT_EQUAL(config_schema(out), 0);
	CU_ASSERT_EQUAL(config_describe("t.full", out), 0);
	CU_ASSERT_EQUAL(config_describe("stage", out), 0);
	CU_ASSERT_EQUAL(config_describe("none", out), WEIR_ENOENT);
	fclose(out);
}

static void edit(void)
{
	static const struct config_change good[] = {{"w", "with.root", "x", false},
	    {"w", "queue.limit", "5", false}, {"web", "slo", "1s", false}};
	static const struct config_change bad[] = {
	    {"w", "to", "x", false}, {"v", "slo", "1s", false}};
	struct weir_errs errs = {0};
	char *text = NULL;
	size_t n;

	CU_ASSERT_EQUAL(config_edit("main.yaml", good, 3, &text, &n, &errs), 0);
	free(text);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_NOT_EQUAL(config_edit("main.yaml", &bad[i], 1, &text, &n, &errs), 0);
	CU_ASSERT_NOT_EQUAL(config_edit("gone.yaml", good, 1, &text, &n, &errs), 0);
	CU_ASSERT_NOT_EQUAL(config_edit("broken.yaml", good, 1, &text, &n, &errs), 0);
}

static void compare(void)
{
	struct config_diff diff;

	CU_ASSERT_EQUAL(config_diff("a 1\nadmin.listen x\nstages.w.use y\n", "a 2\n", &diff), 0);
	free(config_diff_carry(&diff, "a 1\n", "a 2\n"));
	config_diff_free(&diff);
}

static void test_all(void)
{
	static void (*const calls[])(void) = {
	    load, load_wrong, look, print, describe, edit, compare};
	const char *folder = enter_folder();

	types_register();
	full_type_register();
	unsetenv("WEIR_TEST_UNSET");
	write_file("main.yaml", main_yaml);
	write_file("more.yaml", "stages: { s: { use: t.sink, cohort: { by: path } } }\n");
	write_file("nothing.yaml", "x-note: [a, { b: c }]\n");
	write_file("broken.yaml", "stages: [\n");
	struct weir_spec *spec = load_path("main.yaml", sets, 3);
	if (!spec)
		fprintf(stderr, "%s", loading_said());
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	weir_spec_free(spec);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		CU_ASSERT_TRUE(memory_is_given_back(calls[i]));
	leave_folder(folder);
}

CUNIT_MAIN("memory", {"every call gives it back", test_all})
