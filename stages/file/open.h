/* SPDX-License-Identifier: MIT */
/*
 * Opening files below a root so that nothing outside it, no pipe and no device is ever
 * read, and links only if asked for, and naming what was opened (ETag, Last-Modified).
 *
 * All calls may block on the disk. Any thread.
 */
#ifndef WEIR_STAGES_FILE_OPEN_H
#define WEIR_STAGES_FILE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <weir/error.h>
#include <weir/event.h>

#include "condition.h"

/** An ETag: W/, at most two hexadecimal numbers and a letter, quotes, NUL. */
#define FILE_ETAG_SIZE 40

struct file {
	int fd;     /* open for reading, a regular file; -1 when it is none */
	int status; /* on failure: the HTTP status that says why */
	int64_t size_bytes;
	int64_t modified_ns; /* since 1970 */
	uint64_t inode;
};

/** Open the directory `path` for file_open. Fails, too, where the kernel has no openat2 (before
 *  5.6). 0, or WEIR_ESYS with errno. The caller closes *fd. */
int file_root(const char *path, int *fd);

/** `path` as an absolute one, links left as they are, so that it leads to the same place whatever the
 *  working directory becomes. The caller frees it; NULL with errno. */
char *file_root_path(const char *path);

/**
 * Let the descriptor `root` stand for the directory that `path` (of file_root_path) leads to now, when
 * that is another one: a deployment has turned a link or renamed directories. Where nothing is that can be opened, the
 * old one stays. The number stays the same: calls at work on `root` in other threads see one or the
 * other. Costs two stats. Any thread.
 */
void file_root_follow(const char *path, int root);

/** Whether links on the way are followed: none, or those that lead to places below the root by
 *  relative paths. Links of /proc never are. */
enum file_links { FILE_LINKS_NO, FILE_LINKS_BENEATH };

/**
 * Open the regular file `name` (relative, no "..") below `root`. Never waits for a FIFO. Returns 0
 * with *file filled, file->fd the caller's to close; or WEIR_EFAILED with file->status 301 (it is a
 * directory), 403 (permission), 404 (nothing there that may be served: also pipes, devices, links not followed),
 * 503 (descriptors or memory used up) or 500 (the disk failed).
 */
int file_open(int root, enum file_links links, const char *name, struct file *file);

/** Open the directory `name` ("." is the root) for reading, likewise. A descriptor, which is the
 *  caller's to close, or -1. */
int file_open_directory(int root, enum file_links links, const char *name);

/** What kind of thing `name` in the directory `dir` is, links followed as `links` says, without opening
 *  it: 0 with *st filled, or -1 with errno. `dir` must be below the root, or the root. */
int file_look(int dir, enum file_links links, const char *name, struct stat *st);

/**
 * Write the ETag of `file` into `etag`; returns its length. Strong, a hash of time, size and inode:
 * the number of an inode is nobody's business (CVE-2003-1418). When the file changed less than 100 ms from `now_ns` (CLOCK_REALTIME) it may change again without
 * its time changing (the kernel stamps files by its tick): then the tag is weak and another one
 * than the file will have later, so that whoever kept the bytes asks again.
 */
size_t file_etag(const struct file *file, int64_t now_ns, char etag[FILE_ETAG_SIZE]);

/** What a condition is judged against: `etag` as given, the date not later than now. */
struct condition_file file_condition(
    const struct file *file, struct weir_slice etag, int64_t now_ns);

#endif
