/* SPDX-License-Identifier: MIT */
/*
 * Every tests/config/bad/NAME.yaml is refused by the loader, and every
 * tests/config/refused/NAME.yaml loads but is refused by weir_spec_check. The message must equal
 * NAME.txt exactly: file, line, column, sentence, source line, underline, hint. The thread budget
 * of the machine is written as BUDGET.
 *
 * After a change of wording, run it with WEIR_WRITE_EXPECTED=1, which rewrites the .txt files, and
 * read the difference. Stage types are those of types.h and of
 * fixture/graph/payloads.h. Here WEIR_TEST_WORD is "word",
 * WEIR_TEST_EMPTY is empty and WEIR_TEST_UNSET is not set.
 */
#include <dirent.h>
#include <stdbool.h>

#include <weir/graph.h>

#include "base/task.h"
#include "fixture/graph/payloads.h"
#include "loading.h"

/* A folder of files, and whether the loader or the check must refuse them. */
struct folder {
	const char *path;
	int n_min; /* with fewer files, the folder is incomplete */
	bool loads;
};

static const struct folder folders[] = {
    {WEIR_SOURCE_DIR "/tests/config/bad", 140, false},
    {WEIR_SOURCE_DIR "/tests/config/refused", 14, true},
};

#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

static int is_yaml(const struct dirent *entry)
{
	return ends_with(entry->d_name, ".yaml");
}

static int is_expected(const struct dirent *entry)
{
	return ends_with(entry->d_name, ".txt");
}

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 64 * 1024);

	if (f) {
		size_t n = fread(text, 1, 64 * 1024 - 1, f);
		text[n] = '\0';
		fclose(f);
	}
	return text;
}

/* The messages, with BUDGET for the number of threads that this machine allows. */
static const char *said_anywhere(void)
{
	static const char before[] = "the budget of this machine is ";
	static char text[64 * 1024];
	const char *from = loading_said();
	const char *at = strstr(from, before);

	if (!at)
		return from;
	at += strlen(before);
	CU_ASSERT_EQUAL(atoi(at), task_budget());
	snprintf(text, sizeof(text), "%.*sBUDGET%s", (int)(at - from), from,
	    at + strspn(at, "0123456789"));
	return text;
}

/* Is it refused by the right step? The messages are in loading_errs. */
static bool is_refused(const struct folder *folder, const char *yaml)
{
	struct weir_spec *spec = load_path(yaml, NULL, 0);
	bool refused = !spec;

	if (folder->loads)
		refused = spec && weir_spec_check(spec, &loading_errs) == WEIR_EINVAL;
	weir_spec_free(spec);
	return refused;
}

static void check_file(const struct folder *folder, const char *yaml)
{
	char path[512];

	bool refused = is_refused(folder, yaml);
	if (!refused)
		fprintf(stderr, "%s is accepted, or refused by the wrong one\n", yaml);
	CU_ASSERT_TRUE(refused);
	snprintf(path, sizeof(path), "%.*s.txt", (int)(strlen(yaml) - strlen(".yaml")), yaml);
	const char *said = said_anywhere();
	if (getenv("WEIR_WRITE_EXPECTED"))
		write_file(path, said);
	char *expected = read_text(path);
	bool same = strcmp(expected, said) == 0;
	if (!same)
		fprintf(stderr, "%s: expected\n%sbut it says\n%s", yaml, expected, said);
	CU_ASSERT_TRUE(same);
	free(expected);
}

static void check_folder(const struct folder *folder)
{
	struct dirent **names;

	CU_ASSERT_EQUAL_FATAL(chdir(folder->path), 0);
	int n = scandir(".", &names, is_yaml, alphasort);
	CU_ASSERT_FATAL(n >= folder->n_min);
	for (int i = 0; i < n; i++) {
		check_file(folder, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static void test_bad_files(void)
{
	unsetenv("WEIR_TEST_UNSET");
	setenv("WEIR_TEST_EMPTY", "", 1);
	setenv("WEIR_TEST_WORD", "word", 1);
	for (size_t i = 0; i < N_FOLDERS; i++)
		check_folder(&folders[i]);
}

/* Every expectation has its configuration file. */
static void check_pairs(const struct folder *folder)
{
	struct dirent **names;
	char path[512];

	CU_ASSERT_EQUAL_FATAL(chdir(folder->path), 0);
	int n = scandir(".", &names, is_expected, alphasort);
	CU_ASSERT_FATAL(n >= folder->n_min);
	for (int i = 0; i < n; i++) {
		int len = (int)(strlen(names[i]->d_name) - strlen(".txt"));
		snprintf(path, sizeof(path), "%.*s.yaml", len, names[i]->d_name);
		CU_ASSERT_EQUAL(access(path, R_OK), 0);
		free(names[i]);
	}
	free(names);
}

static void test_pairs(void)
{
	for (size_t i = 0; i < N_FOLDERS; i++)
		check_pairs(&folders[i]);
}

CUNIT_MAIN("bad files", {"types with payloads", payloads_register},
    {"each with its words", test_bad_files}, {"pairs", test_pairs})
