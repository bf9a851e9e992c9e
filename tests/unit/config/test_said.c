/* SPDX-License-Identifier: MIT */
/* The lists of keys that other parts of the server use: the keys that files set (config_said), all
 * effective values (config_values), and the texts of the files (config_text). */
#include "loading.h"

static char lines[16 * 1024];

static void take(void *arg, const struct config_said *said)
{
	size_t n = strlen(lines);

	(void)arg;
	snprintf(lines + n, sizeof(lines) - n, "%s:%d %s %s\n", said->file, said->line, said->path,
	    said->value ? said->value : "-");
}

/* The keys that files set, one a line: where, path, value. */
static const char *said_of(const struct weir_spec *spec)
{
	lines[0] = '\0';
	CU_ASSERT_EQUAL(config_said(spec, take, NULL), 0);
	return lines;
}

static void same(const char *found, const char *expected)
{
	if (strcmp(found, expected) != 0)
		fprintf(stderr, "expected\n%sbut found\n%s", expected, found);
	CU_ASSERT_STRING_EQUAL(found, expected);
}

static const char server[] =
    "weir: 1\n"
    "name: shop\n"
    "user: nobody\n"
    "admin:\n"
    "  listen: 127.0.0.1:9900\n"
    "  hosts: [a.example, b.example]\n"
    "  history: { file: ./history }\n"
    "  tls: { cert: c.pem,\n"
    "         key: k.pem }\n"
    "  tokens: { ci: { role: operator, file: ./ci.token }, b: { file: b } }\n"
    "  users: { alice: { role: viewer }, bob: {} }\n"
    "drain: { grace: 5s }\n"
    "overload: { mode: shadow }\n"
    "trace: { sample: 5% }\n"
    "log: { level: warn }\n"
    "alerts:\n"
    "  top_class_shed: { above: 5, stages: { w: { enabled: false } } }\n"
    "  history_file: { for: 1s }\n"
    "stages: { w: { use: t.work } }\n";

/* Every section of the server; keys that are not in the file are not reported. */
static void test_server(void)
{
	struct weir_spec *spec = load_good(server);

	same(said_of(spec), "t.yaml:2 name shop\n"
			    "t.yaml:3 user nobody\n"
			    "t.yaml:5 admin.listen \"127.0.0.1:9900\"\n"
			    "t.yaml:7 admin.history.file ./history\n"
			    "t.yaml:6 admin.hosts [a.example, b.example]\n"
			    "t.yaml:8 admin.tls.cert c.pem\n"
			    "t.yaml:9 admin.tls.key k.pem\n"
			    "t.yaml:10 admin.tokens.ci.role operator\n"
			    "t.yaml:10 admin.tokens.ci.file ./ci.token\n"
			    "t.yaml:10 admin.tokens.b.file b\n"
			    "t.yaml:11 admin.users.alice.role viewer\n"
			    "t.yaml:12 drain.grace 5s\n"
			    "t.yaml:13 overload.mode shadow\n"
			    "t.yaml:14 trace.sample 5%\n"
			    "t.yaml:15 log.level warn\n"
			    "t.yaml:17 alerts.top_class_shed.above 5\n"
			    "t.yaml:17 alerts.top_class_shed.stages.w.enabled false\n"
			    "t.yaml:18 alerts.history_file.for 1s\n"
			    "t.yaml:19 stages.w.use t.work\n");
	weir_spec_free(spec);
}

static void write_stages(void)
{
	write_file("main.yaml",
	    "weir: 1\n"
	    "include: more.yaml\n"
	    "defaults: { threads: 3, queue: { limit: 99 } }\n"
	    "classes:\n"
	    "  a: { match: { path: /a*, header.x-y: z }, slo: 1s }\n"
	    "  b: { priority: 3,\n"
	    "       guarantee: 5% }\n"
	    "stages:\n"
	    "  web: { use: t.source, with: { listen: \"a${WEIR_TEST_UNSET:-b}\" }, to: w }\n"
	    "  w:\n"
	    "    use: t.work\n"
	    "    with: { limits: [{ path: /x }],\n"
	    "            size: 1MB, limit: { rate: 9 } }\n"
	    "    threads: { max: 20 }\n"
	    "    to: { next: s, miss: { stage: w, loop: true } }\n"
	    "    key: header.x-user\n"
	    "  i: { use: t.work, threads: inline }\n");
	write_file("more.yaml", "groups: { g: { threads: 2,\n"
				"               schedule: shared } }\n"
				"stages:\n"
				"  s: { use: t.sink, group: g }\n");
}

/* Stages, classes and groups. A value of `defaults:` is that of each stage that uses it. A line
 * with a variable has no value, and a key that --set sets is not one of the file. */
static void test_stages(void)
{
	const char *sets[] = {"w.queue.limit=5"};
	const char *folder = enter_folder();

	unsetenv("WEIR_TEST_UNSET");
	write_stages();
	struct weir_spec *spec = load_path("main.yaml", sets, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	same(said_of(spec), "main.yaml:5 classes.a.match.path \"/a*\"\n"
			    "main.yaml:5 classes.a.match.header.x-y z\n"
			    "main.yaml:5 classes.a.slo 1s\n"
			    "main.yaml:6 classes.b.priority 3\n"
			    "main.yaml:7 classes.b.guarantee 5%\n"
			    "more.yaml:2 groups.g.schedule shared\n"
			    "more.yaml:1 groups.g.threads.min 2\n"
			    "more.yaml:1 groups.g.threads.max 2\n"
			    "main.yaml:9 stages.web.use -\n"
			    "main.yaml:9 stages.web.with.listen -\n"
			    "main.yaml:9 stages.web.to -\n"
			    "main.yaml:11 stages.w.use t.work\n"
			    "main.yaml:13 stages.w.with.size 1MB\n"
			    "main.yaml:12 stages.w.with.limits [{ path: /x, rate: 100 }]\n"
			    "main.yaml:13 stages.w.with.limit.rate 9\n"
			    "main.yaml:15 stages.w.to.next s\n"
			    "main.yaml:15 stages.w.to.miss w\n"
			    "main.yaml:3 stages.w.threads.min 3\n"
			    "main.yaml:14 stages.w.threads.max 20\n"
			    "main.yaml:16 stages.w.key header.x-user\n"
			    "main.yaml:17 stages.i.use t.work\n"
			    "main.yaml:17 stages.i.threads inline\n"
			    "main.yaml:3 stages.i.queue.limit 99\n"
			    "more.yaml:4 stages.s.use t.sink\n"
			    "main.yaml:3 stages.s.queue.limit 99\n"
			    "more.yaml:4 stages.s.group g\n");
	weir_spec_free(spec);
	leave_folder(folder);
}

/* A plug-in is reported by the first part of its file name, with the hash of the file. */
static void test_plugins(void)
{
	struct weir_spec *spec = load_good("weir: 1\n"
					   "x-a: ./lib/upper.so\n"
					   "x-b: \"${HOME}/b\"\n"
					   "stages: {}\n");
	struct weir_mark first = {.file = "t.yaml", .line = 2, .col = 6, .len = 14};
	struct weir_mark second = {.file = "t.yaml", .line = 3, .col = 6, .len = 9};

	spec->plugins = calloc(3, sizeof(*spec->plugins));
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec->plugins);
	spec->plugins[0] = (struct weir_plugin_spec){strdup("./lib/upper.v2.so"), 0xabc, first};
	spec->plugins[1] = (struct weir_plugin_spec){strdup("b"), 2, second};
	spec->plugins[2] = (struct weir_plugin_spec){strdup("/c.so"), 3, {0}};
	spec->n_plugins = 3;
	same(said_of(spec), "t.yaml:2 plugin.upper ./lib/upper.v2.so (0000000000000abc)\n"
			    "t.yaml:3 plugin.b -\n");
	FILE *out = capture_begin();
	CU_ASSERT_EQUAL(config_explain(spec, "plugin", out), 0);
	same(capture_end(out),
	    "plugin.upper                         ./lib/upper.v2.so (0000000000000abc) t.yaml:2\n"
	    "plugin.b                             b (0000000000000002) t.yaml:3\n"
	    "plugin.c                             /c.so (0000000000000003) program\n");
	capture_free();
	weir_spec_free(spec);
}

/* All values, whether set or not, with names that contain dots and text that needs quotes. */
static void test_values(void)
{
	struct weir_spec *spec =
	    load_good("weir: 1\n"
		      "name: a.b\n"
		      "classes: { c.d: { match: { path: \"a \\\"b\\\"\" } } }\n"
		      "groups: { e.f: {} }\n"
		      "stages: { g.h: { use: t.sink, group: e.f } }\n");
	char *values = config_values_text(spec);

	CU_ASSERT_PTR_NOT_NULL_FATAL(values);
	CU_ASSERT_EQUAL(strncmp(values, "name a.b\nuser \"\"\nadmin.listen ", 30), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nclasses.c.d.match.path \"a \\\"b\\\"\"\n"
					      "classes.c.d.slo 500ms\n"
					      "classes.c.d.priority auto\n"
					      "classes.c.d.guarantee auto\n"
					      "groups.e.f."));
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nstages.g.h.use t.sink\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nstages.g.h.group e.f\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nalerts.stage_stuck.enabled true\n"));
	free(values);
	weir_spec_free(spec);
}

/* The files in the order of their reading, whatever ends their lines. */
static void test_texts(void)
{
	static const struct {
		const char *file, *text;
	} expected[] = {
	    {"main.yaml", "weir: 1\ninclude: [b.yaml, a.yaml]\nstages: {}\n\n"},
	    {"b.yaml", "x-b: ö\n\n"},
	    {"a.yaml", "x-a: 1\n"},
	};
	const char *folder = enter_folder(), *name;
	char *text;

	write_file("main.yaml", "\xef\xbb\xbfweir: 1\r\ninclude: [b.yaml, a.yaml]\nstages: {}\n");
	write_file("a.yaml", "x-a: 1");
	write_file("b.yaml", "x-b: ö\r");
	struct weir_spec *spec = load_path("main.yaml", NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL_FATAL(config_text(spec, i, &name, &text), 0);
		CU_ASSERT_STRING_EQUAL(name, expected[i].file);
		CU_ASSERT_STRING_EQUAL(text, expected[i].text);
		free(text);
	}
	CU_ASSERT_EQUAL(config_text(spec, 3, &name, &text), WEIR_ENOENT);
	CU_ASSERT_EQUAL(config_text(spec, -1, &name, &text), WEIR_ENOENT);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* A spec that a program has built has values, but neither files nor keys that a file sets. */
static void test_by_hand(void)
{
	struct weir_spec *spec = weir_spec_new("hand");
	const char *name;
	char *text;

	types_register();
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_PTR_NOT_NULL(weir_spec_add_stage(spec, "w", "t.work"));
	same(said_of(spec), "");
	CU_ASSERT_EQUAL(config_text(spec, 0, &name, &text), WEIR_ENOENT);
	text = config_values_text(spec);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nstages.w.queue.limit 4096\n"));
	free(text);
	weir_spec_free(spec);
}

CUNIT_MAIN("said", {"the sections of a server", test_server}, {"stages", test_stages},
    {"plug-ins", test_plugins}, {"values", test_values}, {"texts", test_texts},
    {"by hand", test_by_hand})
