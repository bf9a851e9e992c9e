/* SPDX-License-Identifier: MIT */
/* What tests of the load generator share: files to read, sentences to expect. */
#ifndef WEIR_TESTS_LOAD_TEXT_H
#define WEIR_TESTS_LOAD_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

#include "cunit_main.h"

/** A new file with text[0..n); its name into `path`, which is a template (mkstemp). */
static inline void make_file(char *path, const char *text, size_t n)
{
	int fd = mkstemp(path);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n || close(fd) == -1)
		abort();
}

/** Was it refused with a sentence that has `words`? */
static inline void check_refused(int rc, const struct weir_err *err, const char *words)
{
	CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
	if (!strstr(err->text, words))
		fprintf(stderr, "expected: %s\nfound:    %s\n", words, err->text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err->text, words));
}

#endif
