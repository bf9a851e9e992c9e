/* SPDX-License-Identifier: MIT */
/*
 * Replaces a file atomically: the new contents are written beside the target under another name,
 * and renamed over it when complete. Until then, and on any failure, the old file stays unchanged.
 *
 * One thread per outfile.
 */
#ifndef WEIR_LOAD_OUTFILE_H
#define WEIR_LOAD_OUTFILE_H

#include <stdio.h>

#include <weir/error.h>

struct outfile {
	FILE *file; /* write here */
	/* NULL for standard output and for a target that cannot be renamed over (a pipe, a
	 * device) */
	char *path;
	char *temporary; /* NULL if path is */
};

/** Start writing to `path`; "-" is standard output. Symbolic links are followed. Returns 0, or
 * WEIR_ESYS or WEIR_ENOMEM with err->text. After a failure `out` need not be closed. */
int outfile_open(struct outfile *out, const char *path, struct weir_err *err);

/** Close the file and rename it over the target. Returns 0, or WEIR_ESYS with err->text, in which
 * case the target is unchanged. */
int outfile_commit(struct outfile *out, struct weir_err *err);

/** Discard what was written. */
void outfile_abandon(struct outfile *out);

#endif
