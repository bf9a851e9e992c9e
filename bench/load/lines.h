/* SPDX-License-Identifier: MIT */
/*
 * A text file line by line, in bounded memory, with sentences that name file and line.
 *
 * A line may end in LF or CR LF; the last one needs neither. A NUL byte or a line of 64 KiB is an
 * error: no log has one.
 */
#ifndef WEIR_LOAD_LINES_H
#define WEIR_LOAD_LINES_H

#include <stdio.h>

#include <weir/error.h>

#define LINES_BYTES 65536

struct lines {
	const char *path; /* the caller's */
	FILE *file;
	char *text; /* the current line without its end; until the next lines_next */
	long number;
};

/** 0, WEIR_ESYS or WEIR_ENOMEM with err->text; then there is nothing to close. */
int lines_open(struct lines *l, const char *path, struct weir_err *err);
void lines_close(struct lines *l);

/** 1: the next line that is not empty is in l->text. 0: there is none. WEIR_EINVAL, WEIR_ESYS
 *  with err->text. */
int lines_next(struct lines *l, struct weir_err *err);

/** "FILE:LINE: why". WEIR_EINVAL. */
int lines_refuse(const struct lines *l, const char *why, struct weir_err *err);

#endif
