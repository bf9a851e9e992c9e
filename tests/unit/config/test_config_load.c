/* SPDX-License-Identifier: MIT */
/* Files: reading, including, merging; and paths that are not files. */
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>

#include "loading.h"

static const char *const web =
    "  web: { use: t.source, with: { listen: a }, to: { request: w } }\n";

static void write_main(const char *head)
{
	char text[1024];

	snprintf(text, sizeof(text), "weir: 1\n%sstages:\n%s", head, web);
	write_file("main.yaml", text);
}

static const char *refused(const char *path)
{
	struct weir_spec *spec = load_path(path, NULL, 0);

	CU_ASSERT_PTR_NULL(spec);
	weir_spec_free(spec);
	return loading_errs.n > 0 ? loading_errs.err[0].text : "";
}

/* The file's own entries come first, then the included ones; files of a pattern are sorted by
 * name. */
static void test_order(void)
{
	const char *folder = enter_folder();
	mkdir("conf.d", 0755);
	write_main("include: [conf.d/*.yaml, extra.yaml, none/*.yaml]\n"
		   "classes: { first: {} }\n");
	write_file("conf.d/20.yaml", "stages: { c: { use: t.sink } }\nclasses: { third: {} }\n");
	write_file("conf.d/10.yaml",
	    "include: ../deep.yaml\nstages: { b: { use: t.sink } }\nclasses: { second: {} }\n");
	write_file("deep.yaml", "x-note: 1\ngroups: { g: {} }\nstages: { d: { use: t.sink } }\n");
	write_file("extra.yaml", "weir: 1\nname: extra\nstages: { w: { use: t.work } }\n");
	struct weir_spec *spec = load_path("main.yaml", NULL, 0);
	if (!spec)
		fprintf(stderr, "%s", loading_said());
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	const char *const stages[] = {"web", "b", "d", "c", "w"};
	CU_ASSERT_EQUAL_FATAL(spec->n_stages, 5);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_STRING_EQUAL(spec->stages[i].name, stages[i]);
	CU_ASSERT_EQUAL_FATAL(spec->n_classes, 3);
	CU_ASSERT_STRING_EQUAL(spec->classes[0].name, "first");
	CU_ASSERT_STRING_EQUAL(spec->classes[2].name, "third");
	CU_ASSERT_EQUAL(spec->n_groups, 1);
	CU_ASSERT_STRING_EQUAL(spec->name, "extra");
	CU_ASSERT_STRING_EQUAL(spec->path, "main.yaml");
	CU_ASSERT_STRING_EQUAL(spec->stages[2].mark.file, "conf.d/../deep.yaml");
	weir_spec_free(spec);
	leave_folder(folder);
}

/* The same mistakes are found across files as within one, with both locations. */
static void test_twice(void)
{
	const char *folder = enter_folder();
	write_main("include: more.yaml\nname: a\n");
	write_file("more.yaml", "name: b\nstages:\n  web: { use: t.sink }\n");
	refused("main.yaml");
	CU_ASSERT_STRING_EQUAL(loading_said(), "more.yaml:1:1: 'name' is given twice\n"
					       "    1 | name: b\n"
					       "      | ^^^^ the first is at main.yaml:3:1\n"
					       "more.yaml:3:3: stage 'web' is given twice\n"
					       "    3 |   web: { use: t.sink }\n"
					       "      |   ^^^ the first is at main.yaml:5:3\n");
	leave_folder(folder);
}

static void test_many_files(void)
{
	char name[32], pattern[] = "include: 'f*.yaml'\n";

	const char *folder = enter_folder();
	write_main(pattern);
	for (int i = 0; i <= CONFIG_INCLUDES_MAX; i++) {
		snprintf(name, sizeof(name), "f%03d.yaml", i);
		write_file(name, "x-note: 1\n");
	}
	CU_ASSERT_STRING_EQUAL(refused("main.yaml"), "more than 64 files are included");
	unlink(name);
	struct weir_spec *spec = load_path("main.yaml", NULL, 0);
	CU_ASSERT_PTR_NOT_NULL(spec);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* Each bad entry of the list is reported. */
static void test_bad_entries(void)
{
	const char *folder = enter_folder();
	write_main("include: [{ a: 1 }, [b], more.yaml]\n");
	write_file("more.yaml", "x-note: 1\n");
	CU_ASSERT_STRING_EQUAL(
	    refused("main.yaml"), "'include' takes a path, a pattern, or a list of them");
	CU_ASSERT_EQUAL(loading_errs.n, 2);
	leave_folder(folder);
}

/* The limits apply to all files together. */
static void test_many_nodes(void)
{
	const char *folder = enter_folder();
	write_main("include: [a.yaml, b.yaml]\n");
	char *text = malloc(20000), *p = stpcpy(text, "x-list: [");
	for (int i = 0; i < 6000; i++)
		p = stpcpy(p, "a,");
	stpcpy(p, "]\n");
	write_file("a.yaml", text);
	write_file("b.yaml", text);
	free(text);
	CU_ASSERT_STRING_EQUAL(refused("main.yaml"), "there are more than 10000 values and keys");
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].file, "b.yaml");
	leave_folder(folder);
}

static void test_no_file(void)
{
	struct weir_spec *spec = NULL;

	const char *folder = enter_folder();
	loading_errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(config_load("gone.yaml", NULL, 0, &spec, &loading_errs), WEIR_ENOENT);
	CU_ASSERT_STRING_EQUAL(
	    loading_said(), "gone.yaml: cannot be read: No such file or directory\n");
	CU_ASSERT_STRING_EQUAL(refused("."), "the file is not a regular file");
	CU_ASSERT_STRING_EQUAL(refused("/dev/null"), "the file is not a regular file");
	/* a regular file whose first byte cannot be read */
	CU_ASSERT_STRING_EQUAL(refused("/proc/self/mem"), "cannot be read: Input/output error");
	/* Opening a FIFO for reading would wait for a writer that never comes. */
	CU_ASSERT_EQUAL(mkfifo("fifo", 0600), 0);
	CU_ASSERT_STRING_EQUAL(refused("fifo"), "the file is not a regular file");
	leave_folder(folder);
}

static void test_large_file(void)
{
	const char *folder = enter_folder();
	write_main("");
	CU_ASSERT_EQUAL(truncate("main.yaml", CONFIG_BYTES_MAX + 1), 0);
	CU_ASSERT_STRING_EQUAL(refused("main.yaml"), "the file is larger than 1 MiB");
	leave_folder(folder);
}

static void test_writable_by_all(void)
{
	const char *folder = enter_folder();
	write_main("");
	CU_ASSERT_EQUAL(chmod("main.yaml", 0646), 0);
	CU_ASSERT_STRING_EQUAL(
	    refused("main.yaml"), "the file is writable by every user of this host: chmod o-w");
	CU_ASSERT_EQUAL(chmod("main.yaml", 0664), 0);
	struct weir_spec *spec = load_path("main.yaml", NULL, 0);
	CU_ASSERT_PTR_NOT_NULL(spec);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* Only the plug-ins of a file are loaded; a missing one is an error, other mistakes are not. */
static void test_plugins_alone(void)
{
	const char *folder = enter_folder();
	struct weir_errs errs = {0};

	write_file("absent.yaml", "weir: 1\nplugin: ./absent.so\nstages: {}\n");
	CU_ASSERT_NOT_EQUAL(config_load_plugins("absent.yaml", &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	errs = (struct weir_errs){0};
	write_file("none.yaml", "weir: 1\nstages: { a: { use: absent } }\n");
	CU_ASSERT_EQUAL(config_load_plugins("none.yaml", &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
	leave_folder(folder);
}

/* A text has no folder: it cannot include files or load code. */
static void test_text_alone(void)
{
	CU_ASSERT_STRING_EQUAL(load_bad("weir: 1\ninclude: /etc/passwd\nstages: {}\n"),
	    "only a file can include others");
	CU_ASSERT_STRING_EQUAL(
	    load_bad("weir: 1\nplugin: ./x.so\nstages: {}\n"), "only a file can load plug-ins");
}

static void test_default_name(void)
{
	const char *folder = enter_folder();
	mkdir("sub", 0755);
	write_main("");
	CU_ASSERT_EQUAL(rename("main.yaml", "sub/shop.prod.yaml"), 0);
	struct weir_spec *spec = load_path("sub/shop.prod.yaml", NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_STRING_EQUAL(spec->name, "shop");
	weir_spec_free(spec);
	leave_folder(folder);
}

/* A loaded or refused file gives all its memory back. */
static void test_gives_memory_back(void)
{
	static const char *const text[] = {
	    "weir: 1\nclasses: { a: { match: { path: /a* } } }\nstages: { s: { use: t.sink } }\n",
	    "weir: 1\nstages: { s: { use: t.sink, use: [t.sink, x], use: {a: b} } }\n",
	    "weir: 1\nstages: { s: { use: t.sink, with: { x: y } } }\n", "a scalar\n",
	    "!tag { weir: 1 }\n", "&anchor [a]\n", "weir: 1\n--- a second\n", "weir: [\n"};
	const int n = sizeof(text) / sizeof(text[0]);
	size_t before = 0;

	for (int i = 0; i < 10 * n; i++) {
		before =
		    i == 5 * n ? mallinfo2().uordblks : before; /* malloc's caches are filled */
		weir_spec_free(load_text(text[i % n]));
	}
	/* 0 with a sanitizer, which finds leaks itself */
	CU_ASSERT_EQUAL(mallinfo2().uordblks, before);
}

CUNIT_MAIN("load", {"plug-ins alone", test_plugins_alone}, {"order", test_order},
    {"twice", test_twice}, {"bad entries", test_bad_entries}, {"many files", test_many_files},
    {"many nodes", test_many_nodes}, {"no file", test_no_file}, {"large file", test_large_file},
    {"writable by all", test_writable_by_all}, {"text alone", test_text_alone},
    {"default name", test_default_name}, {"gives its memory back", test_gives_memory_back})
