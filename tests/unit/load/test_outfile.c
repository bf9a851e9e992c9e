/* SPDX-License-Identifier: MIT */
/* Files appear whole or not at all. */
#include "load/outfile.h"

#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cunit_main.h"

#define FILE_NAME "test_outfile.txt"
#define LINK_NAME "test_outfile_link.txt"

static void put(const char *text)
{
	FILE *file = fopen(FILE_NAME, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
}

static const char *content(void)
{
	static char text[64];
	FILE *file = fopen(FILE_NAME, "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* No file with a temporary name is left. */
static bool clean(void)
{
	glob_t found;
	bool none = glob(FILE_NAME ".*", 0, NULL, &found) == GLOB_NOMATCH;

	if (!none)
		globfree(&found);
	return none;
}

static void test_commit(void)
{
	struct outfile out;
	struct weir_err err = {0};

	put("old");
	CU_ASSERT_EQUAL_FATAL(outfile_open(&out, FILE_NAME, &err), 0);
	fputs("new", out.file);
	fflush(out.file);
	CU_ASSERT_STRING_EQUAL(content(), "old");
	CU_ASSERT_EQUAL(outfile_commit(&out, &err), 0);
	CU_ASSERT_STRING_EQUAL(content(), "new");
	CU_ASSERT_TRUE(clean());
}

static void test_abandon(void)
{
	struct outfile out;
	struct weir_err err = {0};

	put("old");
	CU_ASSERT_EQUAL_FATAL(outfile_open(&out, FILE_NAME, &err), 0);
	fputs("new", out.file);
	outfile_abandon(&out);
	CU_ASSERT_STRING_EQUAL(content(), "old");
	CU_ASSERT_TRUE(clean());
}

static void test_link(void)
{
	struct outfile out;
	struct weir_err err = {0};
	struct stat st;

	put("old");
	unlink(LINK_NAME);
	CU_ASSERT_EQUAL_FATAL(symlink(FILE_NAME, LINK_NAME), 0);
	CU_ASSERT_EQUAL_FATAL(outfile_open(&out, LINK_NAME, &err), 0);
	fputs("new", out.file);
	CU_ASSERT_EQUAL(outfile_commit(&out, &err), 0);
	CU_ASSERT_EQUAL(lstat(LINK_NAME, &st), 0);
	CU_ASSERT_TRUE(S_ISLNK(st.st_mode));
	CU_ASSERT_STRING_EQUAL(content(), "new");
	unlink(LINK_NAME);
	unlink(FILE_NAME);
}

/* A device remains a device, and a full one is reported. */
static void test_device(void)
{
	struct outfile out;
	struct weir_err err = {0};
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(outfile_open(&out, "/dev/full", &err), 0);
	fputs("text", out.file);
	CU_ASSERT_EQUAL(outfile_commit(&out, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot write"));
	CU_ASSERT_EQUAL(stat("/dev/full", &st), 0);
	CU_ASSERT_TRUE(S_ISCHR(st.st_mode));
}

static void test_no_folder(void)
{
	struct outfile out;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(outfile_open(&out, "no_such_folder/x", &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no_such_folder/x"));
	CU_ASSERT_PTR_NULL(out.file);
}

CUNIT_MAIN("outfile", {"commit replaces", test_commit}, {"abandon does not", test_abandon},
    {"a link is followed", test_link}, {"a device is written in place", test_device},
    {"no folder", test_no_folder})
