/* SPDX-License-Identifier: MIT */
/* The exact examples of the user's document: its two configurations and its messages. */
#include "loading.h"

static const struct weir_knob read_knobs[] = {
    {.name = "root", .type = WEIR_KNOB_STRING, .flags = WEIR_KNOB_REQUIRED}, {.name = NULL}};

/* A double, used only if the real type is not linked. */
static const struct weir_stage_ops read_double = {.abi = WEIR_STAGE_ABI,
    .name = "file.read",
    .summary = "reads files",
    .knobs = read_knobs,
    .conf_size = sizeof(char *),
    .handle = types_handle};

static void test_hello(void)
{
	struct weir_spec *spec =
	    load_good("weir: 1                                   # hello: no C, nine lines\n"
		      "stages:\n"
		      "  web:   { use: http.server, with: { listen: 127.0.0.1:8080 }, to: { "
		      "request: hello } }\n"
		      "  hello: { use: respond, with: { body: \"hello\\n\" } }\n");

	CU_ASSERT_EQUAL(spec->n_stages, 2);
	const struct weir_stage_spec *web = stage_of(spec, "web"), *hello = stage_of(spec, "hello");
	CU_ASSERT_STRING_EQUAL(web->use, "http.server");
	CU_ASSERT_STRING_EQUAL(weir_node_get(web->with, "listen")->text, "127.0.0.1:8080");
	CU_ASSERT_EQUAL(web->n_to, 1);
	CU_ASSERT_STRING_EQUAL(web->to[0].outlet, "request");
	CU_ASSERT_STRING_EQUAL(web->to[0].stage, "hello");
	CU_ASSERT_STRING_EQUAL(weir_node_get(hello->with, "body")->text, "hello\n");
	CU_ASSERT_EQUAL(hello->n_to, 0);
	weir_spec_free(spec);
}

static const char *const files =
    "# yaml-language-server: $schema=./weir.schema.json\n"
    "weir: 1\n"
    "name: files\n"
    "admin: { listen: 127.0.0.1:9900 }\n"
    "defaults:\n"
    "  threads: { min: 1, max: auto }          # auto = cores this process may use\n"
    "  queue:   { limit: 4096 }\n"
    "classes:                                  # first match wins; order is priority, highest "
    "first\n"
    "  interactive: { match: { path: /app/* }, slo: 100ms }\n"
    "  bulk:        { match: { path: /download/* }, slo: 2s }\n"
    "stages:\n"
    "  web:   { use: http.server, with: { listen: \"0.0.0.0:${PORT:-8080}\", max_connections: 20k "
    "}, "
    "to: { request: cache } }\n"
    "  cache:\n"
    "    use: file.cache\n"
    "    with:   { root: ./public, size: 64MiB, max_object: 1MiB }\n"
    "    cohort: { max: 32, linger: 200us }    # optional batch mode\n"
    "    to:     { miss: disk }\n"
    "  disk:\n"
    "    use: file.read                        # blocking reads: that is why it has a pool\n"
    "    with:      { root: ./public, index: index.html }\n"
    "    threads:   { min: 2, max: 32 }        # resized between these by the controller\n"
    "    admission: { policy: weir, mode: enforce }   # or shadow: count, do not refuse; or "
    "another "
    "policy by name\n";

static void test_files(void)
{
	unsetenv("PORT");
	struct weir_spec *spec = load_good(files);

	CU_ASSERT_STRING_EQUAL(spec->name, "files");
	CU_ASSERT_STRING_EQUAL(spec->admin.listen, "127.0.0.1:9900");
	CU_ASSERT_EQUAL(spec->n_classes, 2);
	CU_ASSERT_STRING_EQUAL(spec->classes[0].name, "interactive");
	CU_ASSERT_EQUAL(spec->classes[0].slo_ns, 100000000);
	CU_ASSERT_STRING_EQUAL(spec->classes[1].match[0].field, "path");
	CU_ASSERT_STRING_EQUAL(spec->classes[1].match[0].pattern, "/download/*");
	const struct weir_stage_spec *cache = stage_of(spec, "cache"),
				     *disk = stage_of(spec, "disk");
	CU_ASSERT_STRING_EQUAL(
	    weir_node_get(stage_of(spec, "web")->with, "listen")->text, "0.0.0.0:8080");
	CU_ASSERT_EQUAL(cache->cohort.max, 32);
	CU_ASSERT_EQUAL(cache->cohort.linger_ns, 200000);
	CU_ASSERT_EQUAL(cache->threads.min, 1);
	CU_ASSERT_EQUAL(cache->threads.max, -1);
	CU_ASSERT_EQUAL(disk->threads.min, 2);
	CU_ASSERT_EQUAL(disk->threads.max, 32);
	CU_ASSERT_EQUAL(disk->queue.limit, 4096);
	CU_ASSERT_STRING_EQUAL(disk->admission.policy, "weir");
	CU_ASSERT_EQUAL(disk->admission.mode, WEIR_ADMISSION_ENFORCE);
	weir_spec_free(spec);
}

static void test_messages(void)
{
	struct weir_err err = {0};

	types_register();
	if (!weir_stage_type_find("file.read"))
		weir_stage_register(&read_double, &err);
	const char *folder = enter_folder();
	write_file("shop.yaml", "weir: 1\n"
				"stages:\n"
				"  parse:\n"
				"    use: t.work\n"
				"    treads: 4\n"
				"  disk:\n"
				"      root: /srv\n"
				"      use: file.read\n"
				"      with: { root: . }\n");
	CU_ASSERT_PTR_NULL(load_path("shop.yaml", NULL, 0));
	CU_ASSERT_EQUAL(loading_errs.total, 2);
	CU_ASSERT_STRING_EQUAL(loading_said(),
	    "shop.yaml:5:5: unknown key 'treads' in stage 'parse'\n"
	    "    5 |     treads: 4\n"
	    "      |     ^^^^^^ did you mean 'threads'?\n"
	    "shop.yaml:7:7: 'root' is not a key of a stage\n"
	    "    7 |       root: /srv\n"
	    "      |       ^^^^ 'file.read' takes it inside 'with:'\n");
	unlink("shop.yaml");
	leave_folder(folder);
}

static void test_bare_duration(void)
{
	CU_ASSERT_STRING_EQUAL(load_bad("weir: 1\n"
					"stages: { w: { use: t.work, cohort: { linger: 10 } } }\n"),
	    "'10' needs a unit: write 10ms or 10s");
}

CUNIT_MAIN("operating.md", {"hello", test_hello}, {"files", test_files},
    {"messages", test_messages}, {"bare duration", test_bare_duration})
