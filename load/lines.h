/* SPDX-License-Identifier: MIT */
/*
 * Reads a text file line by line, in bounded memory, with error messages that name file and line.
 *
 * A line may end in LF or CR LF; the last one needs neither. A NUL byte or a line of 64 KiB or
 * more is an error: no log contains either.
 */
#ifndef WEIR_LOAD_LINES_H
#define WEIR_LOAD_LINES_H

#include <stdio.h>

#include <weir/error.h>

#define LINES_BYTES 65536

struct lines {
	const char *path; /* owned by the caller */
	FILE *file;
	char *text; /* the current line without its end; valid until the next lines_next */
	long number;
};

/** Opens the file. Returns 0, or WEIR_ESYS or WEIR_ENOMEM with err->text. After a failure,
 * lines_close need not be called. */
int lines_open(struct lines *l, const char *path, struct weir_err *err);
void lines_close(struct lines *l);

/** Reads the next non-empty line into l->text. Returns 1, 0 at the end of the file, or WEIR_EINVAL
 * or WEIR_ESYS with err->text. */
int lines_next(struct lines *l, struct weir_err *err);

/** Sets err to "FILE:LINE: why" and returns WEIR_EINVAL. */
int lines_refuse(const struct lines *l, const char *why, struct weir_err *err);

#endif
