/* SPDX-License-Identifier: MIT */
/*
 * Replaces a file atomically. The new contents are written to a temporary file in the same folder.
 * When the temporary file is complete, it is renamed over the target. Until then, and after any
 * failure, the old file is unchanged. A target that is not a regular file is written in place.
 *
 * One thread per outfile.
 */
#ifndef WEIR_LOAD_OUTFILE_H
#define WEIR_LOAD_OUTFILE_H

#include <stdio.h>

#include <weir/error.h>

struct outfile {
	FILE *file; /* write here */
	/* the target; NULL for standard output and for a target that cannot be replaced by renaming
	 * (a pipe, a device) */
	char *path;
	char *temporary; /* name of the temporary file; NULL if `path` is NULL */
};

/** Start writing to `path`; "-" is standard output. Symbolic links are followed. Returns 0, or
 * WEIR_ESYS or WEIR_ENOMEM with err->text. After a failure, neither outfile_commit nor
 * outfile_abandon need be called. */
int outfile_open(struct outfile *out, const char *path, struct weir_err *err);

/** Close the file and rename it over the target. Returns 0, or WEIR_ESYS with err->text. After an
 * error, a target that is not written in place is unchanged. */
int outfile_commit(struct outfile *out, struct weir_err *err);

/** Discard what was written, and leave the target unchanged. */
void outfile_abandon(struct outfile *out);

#endif
