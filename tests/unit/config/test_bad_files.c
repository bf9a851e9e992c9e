/* SPDX-License-Identifier: MIT */
/*
 * Every tests/config/bad/NAME.yaml is refused with exactly the words of NAME.txt: file, line,
 * column, sentence, source line, underline, hint.
 *
 * After a change of words run it with WEIR_WRITE_EXPECTED=1, which writes the .txt files anew, and
 * read the difference. Stage types are those of types.h; WEIR_TEST_WORD is "word" and
 * WEIR_TEST_EMPTY empty for them, WEIR_TEST_UNSET is not set.
 */
#include <dirent.h>
#include <stdbool.h>

#include "loading.h"

#define FOLDER WEIR_SOURCE_DIR "/tests/config/bad"

/* Fewer than this, and the folder was not found whole. */
#define FILES_MIN 140

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

static void check_file(const char *yaml)
{
	char path[512];

	struct weir_spec *spec = load_path(yaml, NULL, 0);
	if (spec)
		fprintf(stderr, "%s is accepted\n", yaml);
	CU_ASSERT_PTR_NULL(spec);
	weir_spec_free(spec);
	snprintf(path, sizeof(path), "%.*s.txt", (int)(strlen(yaml) - strlen(".yaml")), yaml);
	if (getenv("WEIR_WRITE_EXPECTED"))
		write_file(path, loading_said());
	char *expected = read_text(path);
	bool same = strcmp(expected, loading_said()) == 0;
	if (!same)
		fprintf(stderr, "%s: expected\n%sbut it says\n%s", yaml, expected, loading_said());
	CU_ASSERT_TRUE(same);
	free(expected);
}

static void test_bad_files(void)
{
	struct dirent **names;

	unsetenv("WEIR_TEST_UNSET");
	setenv("WEIR_TEST_EMPTY", "", 1);
	setenv("WEIR_TEST_WORD", "word", 1);
	CU_ASSERT_EQUAL_FATAL(chdir(FOLDER), 0);
	int n = scandir(".", &names, is_yaml, alphasort);
	CU_ASSERT_FATAL(n >= FILES_MIN);
	for (int i = 0; i < n; i++) {
		check_file(names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* No expectation without its file. */
static void test_pairs(void)
{
	struct dirent **names;
	char path[512];

	CU_ASSERT_EQUAL_FATAL(chdir(FOLDER), 0);
	int n = scandir(".", &names, is_expected, alphasort);
	CU_ASSERT_FATAL(n >= FILES_MIN);
	for (int i = 0; i < n; i++) {
		int len = (int)(strlen(names[i]->d_name) - strlen(".txt"));
		snprintf(path, sizeof(path), "%.*s.yaml", len, names[i]->d_name);
		CU_ASSERT_EQUAL(access(path, R_OK), 0);
		free(names[i]);
	}
	free(names);
}

CUNIT_MAIN("bad files", {"each with its words", test_bad_files}, {"pairs", test_pairs})
