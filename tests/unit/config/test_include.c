/* SPDX-License-Identifier: MIT */
/* Patterns and paths of `include:`: what matches, what is no error, and what is one. */
#include "loading.h"

static const char *const stages = "stages: { w: { use: t.work } }\n";

static void write_main(const char *include)
{
	char text[1024];

	snprintf(text, sizeof(text), "weir: 1\ninclude: %s\n%s", include, stages);
	write_file("main.yaml", text);
}

/* The names of the groups, in their order; each file of the test has one. */
static const char *groups_with(const char *include)
{
	static char names[200];
	size_t n = 0;

	write_main(include);
	struct weir_spec *spec = load_path("main.yaml", NULL, 0);
	names[0] = '\0';
	for (int i = 0; spec && i < spec->n_groups; i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s ", spec->groups[i].name);
	if (!spec)
		snprintf(names, sizeof(names), "%s", loading_said());
	weir_spec_free(spec);
	return names;
}

static void write_group(const char *path, const char *name)
{
	char text[100];

	snprintf(text, sizeof(text), "groups: { %s: {} }\n", name);
	write_file(path, text);
}

static void test_matches(void)
{
	const char *folder = enter_folder();
	char here[4096], include[5000];

	mkdir("d", 0755);
	write_group("d/1.yaml", "one");
	write_group("d/2.yaml", "two");
	write_group("d/10.yaml", "ten");
	write_group("d/1.yml", "other");
	write_group("d/.yaml", "hidden");
	CU_ASSERT_STRING_EQUAL(groups_with("d/*.yaml"), "one ten two ");
	CU_ASSERT_STRING_EQUAL(groups_with("d/?.yaml"), "one two ");
	CU_ASSERT_STRING_EQUAL(groups_with("'d/[2-9].yaml'"), "two ");
	CU_ASSERT_STRING_EQUAL(
	    groups_with("[d/2.yaml, 'd/1*.yaml', d/1.yml]"), "two one ten other ");
	CU_ASSERT_STRING_EQUAL(groups_with("d/../d/./2.yaml"), "two ");
	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof(here)));
	snprintf(include, sizeof(include), "%s/d/2.yaml", here);
	CU_ASSERT_STRING_EQUAL(groups_with(include), "two ");
	/* nothing matches */
	CU_ASSERT_STRING_EQUAL(groups_with("d/*.none"), "");
	CU_ASSERT_STRING_EQUAL(groups_with("none/*.yaml"), "");
	CU_ASSERT_STRING_EQUAL(groups_with("d/1.yaml/*.yaml"), "");
	CU_ASSERT_STRING_EQUAL(groups_with("[]"), "");
	leave_folder(folder);
}

/* The message of a load with this include; the position is that of the entry, 2:10. */
static void refused(const char *include, const char *words)
{
	groups_with(include);
	CU_ASSERT_EQUAL_FATAL(loading_errs.total, 1);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].text, words);
	CU_ASSERT_TRUE(loading_errs.err[0].line == 2 && loading_errs.err[0].col == 10);
}

static void test_refused(void)
{
	const char *folder = enter_folder();

	mkdir("d", 0755);
	mkdir("d/folder.yaml", 0755);
	write_group("one.yaml", "one");
	CU_ASSERT_EQUAL(symlink("loop", "loop"), 0);
	CU_ASSERT_EQUAL(symlink("one.yaml", "same.yaml"), 0);
	CU_ASSERT_EQUAL(symlink("none.yaml", "dangling.yaml"), 0);
	refused("d/*.yaml", "'d/folder.yaml' is not a regular file");
	refused("loop/*.yaml", "a folder of this pattern cannot be read");
	refused("loop/x.yaml", "'loop/x.yaml' cannot be read: Too many levels of symbolic links");
	refused("none.yaml", "'none.yaml' cannot be read: No such file or directory");
	refused("one.yaml/x.yaml", "'one.yaml/x.yaml' cannot be read: Not a directory");
	refused("dangling.yaml", "'dangling.yaml' cannot be read: No such file or directory");
	refused("main.yaml", "'main.yaml' includes itself: it is already being read");
	refused("ma*.yaml", "'main.yaml' includes itself: it is already being read");
	refused("'*e.yaml'", "'same.yaml' is included twice");
	leave_folder(folder);
}

/* The paths of an included file are relative to it, and a file that includes its includer is
 * reported with the whole path. */
static void test_nested(void)
{
	const char *folder = enter_folder();

	mkdir("a", 0755);
	mkdir("a/b", 0755);
	write_file("a/1.yaml", "include: b/2.yaml\ngroups: { one: {} }\n");
	write_file("a/b/2.yaml", "include: ['../3.yaml']\ngroups: { two: {} }\n");
	write_group("a/3.yaml", "three");
	CU_ASSERT_STRING_EQUAL(groups_with("a/1.yaml"), "one two three ");
	write_file("a/3.yaml", "include: 1.yaml\n");
	groups_with("a/1.yaml");
	CU_ASSERT_EQUAL_FATAL(loading_errs.total, 1);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].file, "a/b/../3.yaml");
	CU_ASSERT_STRING_EQUAL(
	    loading_errs.err[0].text, "'a/b/../1.yaml' includes itself: it is already being read");
	leave_folder(folder);
}

/* A key of an included file is reported with the place of the first one. */
static void test_given_twice(void)
{
	static const char *const what[][3] = {
	    {"groups: { w: {} }\n", "groups: { w: {} }\n", "group 'w' is given twice"},
	    {"classes: { w: {} }\n", "classes: { w: {} }\n", "class 'w' is given twice"},
	    {"", "stages: { w: { use: t.sink } }\n", "stage 'w' is given twice"},
	    {"drain: { grace: 1s }\n", "drain: { old: 1s }\n", "'drain' is given twice"},
	    {"groups: { w: {} }\n", "groups: []\n", "'groups' is given twice"},
	    {"name: a\n", "name: a\n", "'name' is given twice"}};
	const char *folder = enter_folder();
	char text[200];

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		write_file("more.yaml", what[i][1]);
		snprintf(text, sizeof(text), "more.yaml\n%s", what[i][0]);
		groups_with(text);
		CU_ASSERT_EQUAL_FATAL(loading_errs.total, 1);
		CU_ASSERT_STRING_EQUAL(loading_errs.err[0].text, what[i][2]);
		CU_ASSERT_STRING_EQUAL(loading_errs.err[0].file, "more.yaml");
		CU_ASSERT_EQUAL(
		    strncmp(loading_errs.err[0].hint, "the first is at main.yaml:", 26), 0);
	}
	/* every file may state the version; each is checked */
	write_file("more.yaml", "weir: 1\n");
	CU_ASSERT_STRING_EQUAL(groups_with("more.yaml"), "");
	write_file("more.yaml", "weir: 2\nx-note: ${}\n");
	groups_with("more.yaml");
	CU_ASSERT_EQUAL_FATAL(loading_errs.total, 1);
	CU_ASSERT_STRING_EQUAL(
	    loading_errs.err[0].text, "this weir reads version 1 of the configuration");
	leave_folder(folder);
}

CUNIT_MAIN("include", {"matches", test_matches}, {"refused", test_refused}, {"nested", test_nested},
    {"given twice", test_given_twice})
