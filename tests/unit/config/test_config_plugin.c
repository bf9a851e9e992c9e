/* SPDX-License-Identifier: MIT */
/* Plug-ins that a configuration names: which are loaded, how they are recorded, and what happens
 * when a file is named no more, or only looked at. */
#include <fcntl.h>

#include "loading.h"

#define GOOD WEIR_BINARY_DIR "/tests/cli/crash.so"

/* Copy the plug-in to `path`. */
static void put_plugin(const char *path)
{
	int from = open(GOOD, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char part[4096];
	ssize_t n;

	CU_ASSERT_FATAL(from >= 0 && to >= 0);
	while ((n = read(from, part, sizeof(part))) > 0)
		CU_ASSERT_EQUAL(write(to, part, (size_t)n), n);
	close(from);
	close(to);
}

static struct weir_spec *looked_at(const char *path)
{
	struct weir_spec *spec = NULL;

	loading_errs = (struct weir_errs){0};
	int rc = config_look(path, NULL, 0, &spec, &loading_errs);
	CU_ASSERT_EQUAL(rc == 0, spec != NULL);
	return spec;
}

/* config_look loads no code: a type of a plug-in that is not loaded is not known yet. */
static void test_look_first(void)
{
	const char *folder = enter_folder();

	setenv("WEIR_TRUST_FILES", "any", 1); /* the files of the clone */
	put_plugin("crash.so");
	write_file("main.yaml", "weir: 1\n"
				"plugin: ./crash.so\n"
				"stages: { c: { use: crash } }\n");
	weir_spec_free(looked_at("main.yaml"));
	CU_ASSERT_PTR_NULL(weir_stage_type_find("crash"));
	leave_folder(folder);
}

static void test_loaded(void)
{
	const char *folder = enter_folder();

	mkdir("sub", 0755);
	mkdir("sub/lib", 0755);
	put_plugin("sub/lib/crash.so");
	write_file("main.yaml", "weir: 1\n"
				"include: sub/more.yaml\n"
				"stages: { c: { use: crash, to: c } }\n");
	write_file("sub/more.yaml", "x-note: 1\nplugin: [ lib/crash.so ]\n");
	struct weir_spec *spec = load_path("main.yaml", NULL, 0);
	if (!spec)
		fprintf(stderr, "%s", loading_said());
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_EQUAL_FATAL(spec->n_plugins, 1);
	const struct weir_plugin_spec *p = &spec->plugins[0];
	CU_ASSERT_STRING_EQUAL(p->path, "lib/crash.so"); /* as written, relative to its file */
	CU_ASSERT_NOT_EQUAL(p->id, 0);
	CU_ASSERT_STRING_EQUAL(p->mark.file, "sub/more.yaml");
	CU_ASSERT_TRUE(p->mark.line == 2 && p->mark.col == 11);
	CU_ASSERT_PTR_NOT_NULL(weir_stage_type_find("crash"));
	char value[200];
	snprintf(value, sizeof(value), "\nplugin.crash lib/crash.so (%016llx)\n",
	    (unsigned long long)p->id);
	char *values = config_values_text(spec);
	CU_ASSERT_PTR_NOT_NULL(strstr(values, value));
	free(values);
	/* a plug-in that is loaded already is found, with the same hash */
	struct weir_spec *again = looked_at("main.yaml");
	CU_ASSERT_PTR_NOT_NULL_FATAL(again);
	CU_ASSERT_EQUAL_FATAL(again->n_plugins, 1);
	CU_ASSERT_EQUAL(again->plugins[0].id, p->id);
	weir_spec_free(again);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* A stage whose type is from a plug-in that the file does not name: the type would not exist after
 * a restart. */
static void test_left(void)
{
	const char *folder = enter_folder();

	write_file("main.yaml", "weir: 1\nstages:\n  c: { use: crash }\n");
	CU_ASSERT_PTR_NULL(load_path("main.yaml", NULL, 0));
	CU_ASSERT_EQUAL(loading_errs.total, 1);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].text,
	    "stage type 'crash' comes from a plug-in that this file does not name");
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].hint, "add 'plugin: FILE.so'");
	CU_ASSERT_TRUE(loading_errs.err[0].line == 3 && loading_errs.err[0].col == 13);
	leave_folder(folder);
}

/* The plug-ins alone: each is loaded, and each that cannot be is reported at its place. */
static void test_alone(void)
{
	struct weir_errs errs = {0};
	const char *folder = enter_folder();

	put_plugin("crash.so");
	put_plugin("other.so"); /* the file has no weir_stage_other */
	write_file("text.so", "no shared object");
	write_file("good.yaml", "weir: 1\nplugin: [crash.so]\nstages: { a: [b] }\n");
	CU_ASSERT_EQUAL(config_load_plugins("good.yaml", &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
	write_file("bad.yaml", "weir: 1\n"
			       "plugin:\n"
			       "  - other.so\n"
			       "  - crash.so\n"
			       "  - text.so\n"
			       "  - ''\n"
			       "  - [crash.so]\n");
	CU_ASSERT_EQUAL(config_load_plugins("bad.yaml", &errs), WEIR_EINVAL);
	CU_ASSERT_EQUAL_FATAL(errs.total, 4);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(errs.err[i].line, i == 0 ? 3 : 4 + i);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "has no symbol 'weir_stage_other'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[1].text, "is not a shared object"));
	CU_ASSERT_STRING_EQUAL(
	    errs.err[2].text, "'plugin' takes the path of a .so, or a list of them");
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(config_load_plugins("gone.yaml", &errs), WEIR_ENOENT);
	CU_ASSERT_EQUAL(errs.total, 1);
	leave_folder(folder);
}

CUNIT_MAIN("plug-ins of a configuration", {"looked at first", test_look_first},
    {"loaded", test_loaded}, {"named no more", test_left}, {"alone", test_alone})
