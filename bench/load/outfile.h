/* SPDX-License-Identifier: MIT */
/*
 * A file that appears whole or not at all: written beside its place under another name, renamed when
 * it is complete. Until then, and when anything fails, what stood there before stays as it was.
 *
 * One thread per outfile.
 */
#ifndef WEIR_LOAD_OUTFILE_H
#define WEIR_LOAD_OUTFILE_H

#include <stdio.h>

#include <weir/error.h>

struct outfile {
	FILE *file; /* write here */
	char *path; /* NULL: standard output, or what cannot be renamed over (a pipe, a device) */
	char *temporary; /* NULL where path is */
};

/** Begin to write `path`; "-" is standard output. A symbolic link is followed. 0, WEIR_ESYS,
 *  WEIR_ENOMEM with err->text; then `out` needs no closing. */
int outfile_open(struct outfile *out, const char *path, struct weir_err *err);

/** Make what was written the file. 0, or WEIR_ESYS with err->text and nothing changed. */
int outfile_commit(struct outfile *out, struct weir_err *err);

/** Forget what was written. */
void outfile_abandon(struct outfile *out);

#endif
