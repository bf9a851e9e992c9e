/* SPDX-License-Identifier: MIT */
/*
 * The thread that writes the history file, so that the admin thread never waits for a disk.
 *
 *   IDLE --post--> BUSY --the job is written, or failed--> IDLE
 *
 * One job at a time: nothing can be posted while a job is being written, so a slow disk makes the
 * file lag but costs no memory. A whole file is written beside the old one and then replaces it by
 * a rename. A failure is logged once, when it first occurs.
 *
 * A write that hangs cannot be interrupted. history_writer_end waits for a bounded time and then
 * abandons the thread, which frees its memory when the write returns.
 *
 * All functions are called by one thread, the owner's.
 */
#ifndef WEIR_ADMIN_HISTORY_WRITER_H
#define WEIR_ADMIN_HISTORY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum number of runs in a job: two for each ring, since the slots may wrap around its end. */
#define HISTORY_RUNS_MAX 4

/** Contiguous bytes in the file. */
struct history_run {
	size_t at, n; /* offset in the file, length */
};

/** A job: several runs. `data` holds their bytes, one run after the other. */
struct history_job {
	bool whole; /* `data` is a new file of n bytes, without runs */
	char *data; /* malloc'ed */
	size_t n;   /* bytes in `data` */
	int n_runs;
	struct history_run run[HISTORY_RUNS_MAX];
};

struct history_writer;

/** Start the thread for the file at `path`, which is open and locked as `fd`; the writer takes over
 *  the descriptor. Returns NULL if memory or threads are short; the caller still owns the
 *  descriptor in this case. */
struct history_writer *history_writer_new(const char *path, int fd);

/** Return whether the writer is idle. *ok then reports whether the last job was written; it is true
 *  before the first job. */
bool history_writer_idle(struct history_writer *writer, bool *ok);

/** Write `job` and take over its data. Call it only while the writer is idle. */
void history_writer_post(struct history_writer *writer, const struct history_job *job);

/** Wait until the writer is idle, at most until `until_ns` (CLOCK_MONOTONIC). Returns whether it is
 *  idle. */
bool history_writer_wait(struct history_writer *writer, int64_t until_ns);

/** Return whether the file is out of date because the last job failed or history_writer_late was
 *  called for the current one. */
bool history_writer_failing(const struct history_writer *writer);

/** Report that the job in progress takes too long. Logged only once until a job has been
 * written. */
void history_writer_late(struct history_writer *writer);

/** Stop the thread, and free everything if it exits by `until_ns`. Returns false if a write hangs
 *  and the thread was abandoned. Do not use the pointer afterwards. */
bool history_writer_end(struct history_writer *writer, int64_t until_ns);

#endif
