/* SPDX-License-Identifier: MIT */
/* Shared by tests of the load generator: input files and expected error messages. */
#ifndef WEIR_TESTS_LOAD_TEXT_H
#define WEIR_TESTS_LOAD_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

#include "cunit_main.h"

/** Create a file with text[0..n). `path` is a template for mkstemp and gets its name. */
static inline void make_file(char *path, const char *text, size_t n)
{
	int fd = mkstemp(path);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n || close(fd) == -1)
		abort();
}

/** Was it refused with a message that contains `words`? */
static inline void check_refused(int rc, const struct weir_err *err, const char *words)
{
	CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
	if (!strstr(err->text, words))
		fprintf(stderr, "expected: %s\nfound:    %s\n", words, err->text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err->text, words));
}

#endif
