/* SPDX-License-Identifier: MIT */
/*
 * Opens files below a root directory and computes their validators (ETag, Last-Modified). Nothing
 * outside the root is ever read, nor is any pipe or device, and links are followed only if the
 * caller allows it.
 *
 * All calls may block on the disk. Any thread.
 */
#ifndef WEIR_STAGES_FILE_OPEN_H
#define WEIR_STAGES_FILE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <weir/error.h>
#include <weir/event.h>

#include "condition.h"

/** Space for an ETag: W/, at most two hexadecimal numbers and a letter, quotes, NUL. */
#define FILE_ETAG_SIZE 40

struct file {
	int fd;     /* open for reading, a regular file; -1 on failure */
	int status; /* on failure, the matching HTTP status */
	int64_t size_bytes;
	/* mtime and ctime. Anyone with write access can set the mtime to any value, but nobody can
	 * set the ctime. An int64_t of nanoseconds since 1970 would overflow in 2262. */
	struct timespec modified, changed;
	uint64_t inode;
	/* enum encoding; part of the ETag, since a precompressed copy (variant.h) may have the same
	 * size and time as the file itself */
	unsigned coding;
};

/** The inputs of an ETag. LOCAL: all attributes that can reveal a change. PORTABLE: only the
 * attributes that copies of a file on several machines have in common. */
enum file_etags { FILE_ETAGS_LOCAL, FILE_ETAGS_PORTABLE };

/** `t` in nanoseconds since 1970, clamped to 64 bits. */
int64_t file_time_ns(struct timespec t);

/** Open the directory `path` for use with file_open. Also fails on kernels without openat2 (before
 * 5.6). Returns 0, or WEIR_ESYS with errno. The caller closes *fd. */
int file_root(const char *path, int *fd);

/** Make `path` absolute, so that later changes of the working directory do not affect it. Links are
 * not resolved. The caller frees the result; NULL with errno on failure. */
char *file_root_path(const char *path);

/**
 * Follow a deployment that has switched a link or renamed directories: if `path` (from
 * file_root_path) now leads to another directory, make the descriptor `root` refer to the new one.
 * If the new directory cannot be opened, the old one stays. The descriptor number does not change,
 * so concurrent calls in other threads use either the old or the new directory. Costs two stats.
 * Any thread.
 */
void file_root_follow(const char *path, int root);

/** Symbolic links that are followed: none, or those that stay below the root (absolute links never
 * do). Links in /proc are never followed. */
enum file_links { FILE_LINKS_NO, FILE_LINKS_BENEATH };

/**
 * Open the regular file `name` (relative, no "..") below `root`. Never waits for a FIFO. Returns 0
 * with *file filled in and file->fd for the caller to close; or WEIR_EFAILED with file->status 301
 * (a directory), 403 (permission), 404 (nothing that may be served, including pipes, devices and
 * links that are not followed), 503 (out of descriptors or memory) or 500 (disk failure).
 */
int file_open(int root, enum file_links links, const char *name, struct file *file);

/** Open the directory `name` ("." is the root) for reading, like file_open. Returns a descriptor,
 * which the caller closes, or -1. */
int file_open_directory(int root, enum file_links links, const char *name);

/** Stat `name` in the directory `dir` without opening it; links are followed as in `links`. Returns
 * 0 with *st filled in, or -1 with errno. `dir` must be the root or below it. */
int file_look(int dir, enum file_links links, const char *name, struct stat *st);

/**
 * Write the ETag of `file` into `etag`. Returns its length.
 *
 * The tag is a hash, because inode numbers must not be disclosed (CVE-2003-1418). FILE_ETAGS_LOCAL
 * covers both times, size and inode, so the tag changes even if a writer sets the modification time
 * back. FILE_ETAGS_PORTABLE covers the modification time and the size. Both cover the coding.
 *
 * The tag is strong, unless the file changed within 100 ms of `now_ns` (CLOCK_REALTIME). Such a
 * file may change again and keep the same time, since file timestamps advance only with the
 * kernel's tick. Its tag is weak, and differs from the later, strong tag, so that caches
 * revalidate. The time compared is `changed` for FILE_ETAGS_LOCAL, `modified` for
 * FILE_ETAGS_PORTABLE.
 */
size_t file_etag(
    const struct file *file, enum file_etags what, int64_t now_ns, char etag[FILE_ETAG_SIZE]);

/** The input for condition_judge: `etag` as given, the size, and a date that is not later than
 * now. */
struct condition_file file_condition(
    const struct file *file, struct weir_slice etag, int64_t now_ns);

#endif
