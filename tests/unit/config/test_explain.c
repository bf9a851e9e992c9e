/* SPDX-License-Identifier: MIT */
/* Effective values and their origins. */
#include "loading.h"

static const char *const text =
    "weir: 1\n"
    "name: shop\n"
    "defaults: { queue: { limit: 99 }, threads: { min: 3, max: 30 } }\n"
    "classes:\n"
    "  a: { match: { header.accept: \"text/html*\" } }\n"
    "groups: { g: { threads: 2 } }\n"
    "stages:\n"
    "  web: { use: t.source, with: { listen: \"127.0.0.1:${WEIR_TEST_UNSET:-80}\" }, to: w }\n"
    "  w:\n"
    "    use: t.work\n"
    "    with: { limits: [ { path: /x } ], root: \"\" }\n"
    "    threads: { max: 20 }\n"
    "    to: { next: s }\n"
    "  s: { use: t.sink, group: g }\n";

static const char *explain(const struct weir_spec *spec, const char *path, int expected)
{
	FILE *out = capture_begin();

	CU_ASSERT_EQUAL(config_explain(spec, path, out), expected);
	return capture_end(out);
}

/* Is there a line "path value origin", whatever the spacing? */
static bool has(const char *path, const char *value, const char *origin)
{
	char line[512], want[512];

	snprintf(want, sizeof(want), "%s %s %s", path, value, origin);
	for (const char *p = captured; *p;) {
		size_t n = 0;
		for (; *p && *p != '\n'; p++)
			if (n < sizeof(line) - 1 && (*p != ' ' || (n > 0 && line[n - 1] != ' ')))
				line[n++] = *p;
		line[n] = '\0';
		p += *p == '\n';
		if (strcmp(line, want) == 0)
			return true;
	}
	fprintf(stderr, "no line '%s' in\n%s", want, captured);
	return false;
}

static void test_origins(void)
{
	struct weir_spec *spec = load_good(text);

	explain(spec, NULL, 0);
	CU_ASSERT_TRUE(has("name", "shop", "t.yaml:2"));
	CU_ASSERT_TRUE(has("drain.grace", "10s", "default"));
	CU_ASSERT_TRUE(has("payloads.memory", "1GiB", "default"));
	CU_ASSERT_TRUE(has("payloads.family_memory", "256MiB", "default"));
	CU_ASSERT_TRUE(has("classes.a.match.header.accept", "\"text/html*\"", "t.yaml:5"));
	CU_ASSERT_TRUE(has("classes.a.slo", "500ms", "default"));
	CU_ASSERT_TRUE(has("classes.a.priority", "auto", "default"));
	CU_ASSERT_TRUE(has("classes.a.guarantee", "auto", "default"));
	CU_ASSERT_TRUE(has("overload.mode", "enforce", "default"));
	CU_ASSERT_TRUE(has("groups.g.threads.min", "2", "t.yaml:6"));
	CU_ASSERT_TRUE(has("groups.g.threads.spin", "auto", "default"));
	CU_ASSERT_TRUE(has("stages.web.with.listen", "\"127.0.0.1:80\"", "t.yaml:8"));
	CU_ASSERT_TRUE(has("stages.web.with.max_connections", "1000", "default"));
	CU_ASSERT_TRUE(has("stages.web.to", "w", "t.yaml:8"));
	CU_ASSERT_TRUE(has("stages.w.with.root", "\"\"", "t.yaml:11"));
	CU_ASSERT_TRUE(has("stages.w.with.limits", "[{ path: /x, rate: 100 }]", "t.yaml:11"));
	CU_ASSERT_TRUE(has("stages.w.with.limit.rate", "7", "default"));
	CU_ASSERT_TRUE(has("stages.w.to.next", "s", "t.yaml:13"));
	CU_ASSERT_TRUE(has("stages.w.threads.min", "3", "t.yaml:3 (defaults)"));
	CU_ASSERT_TRUE(has("stages.w.threads.max", "20", "t.yaml:12"));
	CU_ASSERT_TRUE(has("stages.w.queue.limit", "99", "t.yaml:3 (defaults)"));
	CU_ASSERT_TRUE(has("stages.s.group", "g", "t.yaml:14"));
	/* Settings that a stage does not have are not shown. */
	CU_ASSERT_PTR_NULL(strstr(captured, "stages.s.threads"));
	CU_ASSERT_PTR_NULL(strstr(captured, "stages.web.queue"));
	weir_spec_free(spec);
	capture_free();
}

static void test_paths(void)
{
	struct weir_spec *spec = load_good(text);

	explain(spec, "stages.w.threads", 0);
	CU_ASSERT_TRUE(has("stages.w.threads.max", "20", "t.yaml:12"));
	CU_ASSERT_PTR_NULL(strstr(captured, "stages.web"));
	CU_ASSERT_PTR_NULL(strstr(captured, "queue"));
	explain(spec, "stages.w.threads.max", 0);
	CU_ASSERT_PTR_EQUAL(strchr(captured, '\n'), captured + strlen(captured) - 1);
	CU_ASSERT_STRING_EQUAL(explain(spec, "stages.w.thr", WEIR_ENOENT), "");
	CU_ASSERT_STRING_EQUAL(explain(spec, "nothing", WEIR_ENOENT), "");
	weir_spec_free(spec);
	capture_free();
}

static void test_sets(void)
{
	const char *sets[] = {"w.threads=inline", "w.with.size=1MB"};

	const char *folder = enter_folder();
	write_file("main.yaml", text);
	struct weir_spec *spec = load_path("main.yaml", sets, 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	explain(spec, "stages.w", 0);
	CU_ASSERT_TRUE(has("stages.w.threads", "inline", "--set"));
	CU_ASSERT_TRUE(has("stages.w.with.size", "1MB", "--set"));
	CU_ASSERT_TRUE(has("stages.w.with.time", "1ms", "default"));
	CU_ASSERT_PTR_NULL(strstr(captured, "threads.max"));
	weir_spec_free(spec);
	capture_free();
	leave_folder(folder);
}

/* A spec that was not loaded from a file has no locations. */
static void test_by_hand(void)
{
	struct weir_spec *spec = weir_spec_new("hand");

	types_register();
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_PTR_NOT_NULL(weir_spec_add_stage(spec, "w", "t.work"));
	explain(spec, "stages.w.queue.limit", 0);
	CU_ASSERT_TRUE(has("stages.w.queue.limit", "4096", "program"));
	weir_spec_free(spec);
	capture_free();
}

CUNIT_MAIN("explain", {"origins", test_origins}, {"paths", test_paths}, {"sets", test_sets},
    {"by hand", test_by_hand})
