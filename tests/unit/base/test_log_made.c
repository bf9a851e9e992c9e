/* SPDX-License-Identifier: MIT */
/* A log file is created when its writer starts, not before. */
#include <weir/log_file.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cunit_main.h"

static char folder[] = "/tmp/weir-made-XXXXXX";
static char path[64];

static void begin(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
}

static void end(void)
{
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static struct weir_log_file *opened(void)
{
	struct weir_log_file *f = NULL;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL_FATAL(weir_log_file_open(path, 4096, 0, &f, &err), 0);
	return f;
}

/* Opening checks whether the file could be created but does not create it. A run that only checks a
 * configuration must not leave a file that another user could not write. Starting creates it. */
static void test_made_at_start(void)
{
	struct weir_err err = {0};
	struct weir_log_file *f;
	char nowhere[80];

	begin();
	weir_log_file_close(opened());
	CU_ASSERT_EQUAL(access(path, F_OK), -1);
	snprintf(nowhere, sizeof(nowhere), "%s/no/log", folder);
	CU_ASSERT_EQUAL(weir_log_file_open(nowhere, 4096, 0, &f, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No such file or directory"));
	CU_ASSERT_EQUAL(weir_log_file_open("", 4096, 0, &f, &err), WEIR_ESYS);
	f = opened();
	CU_ASSERT_EQUAL_FATAL(weir_log_file_start(f, "test", &err), 0);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	weir_log_file_close(f);
	unlink(path);
	f = opened(); /* never started: its lines are not lost */
	CU_ASSERT(weir_log_file_add(f, WEIR_LOG_INFO, "early\n", 6));
	weir_log_file_close(f);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	CU_ASSERT_EQUAL(read(fd, text, sizeof(text) - 1), 6);
	CU_ASSERT_STRING_EQUAL(text, "early\n");
	close(fd);
	end();
}

/* The folder is removed between open and start. */
static void test_folder_goes(void)
{
	struct weir_err err = {0};

	begin();
	struct weir_log_file *f = opened();
	CU_ASSERT_EQUAL(rmdir(folder), 0);
	CU_ASSERT_EQUAL(weir_log_file_start(f, "test", &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be opened for writing"));
	weir_log_file_close(f);
	CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
	end();
}

CUNIT_MAIN("when logs are made", {"made at start", test_made_at_start},
    {"the folder goes", test_folder_goes})
