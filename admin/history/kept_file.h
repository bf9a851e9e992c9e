/* SPDX-License-Identifier: MIT */
/*
 * A file that a server keeps for itself from one start to the next: the history (history_file.h), and
 * the decisions and changes (past_file.h). It is opened and locked, loaded, and, if it is not valid,
 * renamed to PATH.bad. Failures are logged. One thread.
 */
#ifndef WEIR_ADMIN_KEPT_FILE_H
#define WEIR_ADMIN_KEPT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kept_file {
	char *path, *bad_path; /* owned */
	int fd;                /* open and locked; -1 if not open or given away */
};

/** Load the `size` bytes of `fd` into `arg`. Returns NULL on success, kept_no_memory if memory ran out,
 *  or else the reason why the file is not valid. */
typedef const char *kept_load_fn(int fd, uint64_t size, void *arg);

extern const char kept_no_memory[];

/** Open the file at `path`, which is created if it does not exist, lock it, and load it with `load` unless
 *  it is empty. Returns whether the file can be written; if not, the reason is logged. Call
 *  kept_file_fini in both cases. */
bool kept_file_open(struct kept_file *file, const char *path, kept_load_fn *load, void *arg);

/** Close the file, unless its descriptor was given away, and free the paths. */
void kept_file_fini(struct kept_file *file);

/** Log that something failed; errno has the reason. */
void kept_file_fails(const struct kept_file *file, const char *what);

/** Read `n` bytes from the start of `fd`. Returns false if they cannot be read. */
bool kept_read_all(int fd, char *data, size_t n);

#endif
