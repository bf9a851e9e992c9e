/* SPDX-License-Identifier: MIT */
/* The limits of a configuration: what is just allowed is accepted, and what is more is refused. */
#include "loading.h"

static const char *refused(const char *path, const char *set)
{
	struct weir_spec *spec = load_path(path, &set, set ? 1 : 0);

	CU_ASSERT_PTR_NULL(spec);
	weir_spec_free(spec);
	return loading_errs.n > 0 ? loading_errs.err[0].text : "";
}

static void accepted(const char *path, const char *set)
{
	struct weir_spec *spec = load_path(path, &set, set ? 1 : 0);

	if (!spec)
		fprintf(stderr, "%s", loading_said());
	CU_ASSERT_PTR_NOT_NULL(spec);
	weir_spec_free(spec);
}

/* `text`, then `n` times `c`, then `end`; the caller frees the result. */
static char *with_many(const char *text, char c, size_t n, const char *end)
{
	size_t before = strlen(text);
	char *all = malloc(before + n + strlen(end) + 1);

	memcpy(all, text, before);
	memset(all + before, c, n);
	strcpy(all + before + n, end);
	return all;
}

static void test_bytes(void)
{
	static const char text[] = "weir: 1\nstages: {}\n#";
	const char *folder = enter_folder();
	struct weir_spec *spec = NULL;
	char *all = with_many(text, 'x', CONFIG_BYTES_MAX - strlen(text), "");

	write_file("main.yaml", all);
	accepted("main.yaml", NULL);
	CU_ASSERT_EQUAL(config_load_text(all, CONFIG_BYTES_MAX, "t", &spec, &loading_errs), 0);
	weir_spec_free(spec);
	free(all);
	all = with_many(text, 'x', CONFIG_BYTES_MAX - strlen(text) + 1, "");
	write_file("main.yaml", all);
	CU_ASSERT_STRING_EQUAL(refused("main.yaml", NULL), "the file is larger than 1 MiB");
	free(all);
	/* as an included file, with the position that names it */
	write_file("first.yaml", "weir: 1\ninclude: main.yaml\nstages: {}\n");
	CU_ASSERT_STRING_EQUAL(refused("first.yaml", NULL), "'main.yaml' is larger than 1 MiB");
	CU_ASSERT_TRUE(loading_errs.err[0].line == 2 && loading_errs.err[0].col == 10);
	leave_folder(folder);
}

/* All expansions together write at most 1 MiB. */
static void test_expanded(void)
{
	char *big = with_many("", 'x', 65536, "");
	char text[2048], *p = text;
	struct weir_spec *spec;

	setenv("WEIR_TEST_BIG", big, 1);
	p += sprintf(p,
	    "weir: 1\nstages: { w: { use: t.work, with: { root: \"${WEIR_TEST_EMPTY}\", names: [");
	for (int i = 0; i < 16; i++)
		p += sprintf(p, "\"${WEIR_TEST_BIG}\", ");
	strcpy(p, "] } } }\n");
	setenv("WEIR_TEST_EMPTY", "", 1);
	spec = load_good(text);
	weir_spec_free(spec);
	setenv("WEIR_TEST_EMPTY", "y", 1);
	CU_ASSERT_STRING_EQUAL(
	    load_bad(text), "the variables of this configuration expand to more than 1 MiB");
	CU_ASSERT_EQUAL(loading_errs.total, 1);
	unsetenv("WEIR_TEST_BIG");
	free(big);
}

static void test_names_of_variables(void)
{
	char *longest = with_many("", 'A', 127, ""), *longer = with_many("", 'A', 128, "");
	char text[400];

	setenv(longest, "word", 1);
	setenv(longer, "word", 1);
	snprintf(text, sizeof(text), "weir: 1\nname: \"${%s}\"\nstages: {}\n", longest);
	struct weir_spec *spec = load_good(text);
	CU_ASSERT_STRING_EQUAL(spec->name, "word");
	weir_spec_free(spec);
	snprintf(text, sizeof(text), "weir: 1\nname: \"${%s}\"\nstages: {}\n", longer);
	const char *said = load_bad(text);
	CU_ASSERT_EQUAL(strncmp(said, "'${AAAA", 7), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "AAA' is not a variable"));
	unsetenv(longest);
	unsetenv(longer);
	free(longest);
	free(longer);
}

static void test_overrides(void)
{
	const char *folder = enter_folder();
	char *longest = with_many("w.", 'x', 255, "=1"), *longer = with_many("w.", 'x', 256, "=1");

	write_file("main.yaml", "weir: 1\nstages: { w: { use: t.sink } }\n");
	/* the override is quoted, which leaves no space for the reason */
	refused("main.yaml", longest);
	CU_ASSERT_EQUAL(loading_errs.err[0].code, WEIR_ENOENT);
	refused("main.yaml", longer);
	CU_ASSERT_EQUAL(loading_errs.err[0].code, WEIR_EINVAL);
	free(longest);
	free(longer);
	leave_folder(folder);
}

/* A path is at most as long as the system allows, with the folder of the file that names it. */
static void test_paths(void)
{
	static const char *const key[] = {"include", "plugin"};
	static const char *const words[] = {
	    "this path is too long", "'plugin' takes the path of a .so, or a list of them"};
	const char *folder = enter_folder();
	const size_t most = 4095 - strlen("sub/");

	mkdir("sub", 0755);
	for (int i = 0; i < 2; i++) {
		char head[40];
		snprintf(head, sizeof(head), "weir: 1\nstages: {}\n%s: ", key[i]);
		char *text = with_many(head, 'x', most, "\n");
		write_file("sub/main.yaml", text);
		free(text);
		/* no system has a file name this long, but that is found when it is opened */
		CU_ASSERT_STRING_NOT_EQUAL(refused("sub/main.yaml", NULL), words[i]);
		text = with_many(head, 'x', most + 1, "\n");
		write_file("sub/main.yaml", text);
		free(text);
		CU_ASSERT_STRING_EQUAL(refused("sub/main.yaml", NULL), words[i]);
	}
	leave_folder(folder);
}

CUNIT_MAIN("limits", {"bytes", test_bytes}, {"expanded bytes", test_expanded},
    {"names of variables", test_names_of_variables}, {"overrides", test_overrides},
    {"paths", test_paths})
