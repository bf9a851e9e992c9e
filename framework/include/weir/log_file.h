/* SPDX-License-Identifier: MIT */
/*
 * Log files: many threads add lines to a file, and one thread writes them.
 *
 * A line is appended to a buffer under a mutex. The writer thread swaps the buffer for an empty one
 * and writes outside the lock. So a slow disk or a pipe without a reader does not delay requests, a
 * whole buffer costs one system call, and memory is bounded by two buffers. When both are full,
 * weir_log_file_add refuses new lines, and its caller counts them.
 *
 *   OPEN --start--> RUNNING (file exists, writer runs) --close--> buffers written, writer ended
 *
 * | call                                | threads                                    |
 * |-------------------------------------|--------------------------------------------|
 * | weir_log_file_add                   | any thread; holds a mutex while it copies  |
 * | weir_log_file_move, weir_log_reopen | any thread; the writer acts on it soon     |
 * | the others                          | the owner                                  |
 */
#ifndef WEIR_LOG_FILE_H
#define WEIR_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/log.h>

WEIR_C_BEGIN

struct weir_log_file;

/**
 * Open `target`: the path of a file to append to, `stderr`, `stdout`, `journal` (the systemd
 * journal; every line is an entry with its priority) or `journal:SOCKET` for the journal of another
 * namespace. Allocates two buffers of `buffer_bytes`. A line may wait up to `flush_ns`, so that it
 * is written together with others.
 *
 * A missing file is not created yet, so that checking a configuration leaves no file behind. It is
 * an error if this process could not create the file. A FIFO is not opened yet either: its reader
 * would take the close at the end of the check for the end of the log. Returns 0 with *out set, or
 * WEIR_ENOMEM or WEIR_ESYS with a message in `err`.
 */
WEIR_API int weir_log_file_open(const char *target, size_t buffer_bytes, int64_t flush_ns,
    struct weir_log_file **out, struct weir_err *err);

/** Create the file if it does not exist (mode 0640) and start the writer, a thread called `name`.
 *  Until this call, lines stay in the buffer. Returns 0, or WEIR_ESYS or WEIR_ENOMEM with a message
 *  in `err`. */
WEIR_API int weir_log_file_start(struct weir_log_file *f, const char *name, struct weir_err *err);

/** Append line[0..n), which ends with a newline and contains no other newline. Returns false if the
 *  buffers are full; the line is then lost. `level` determines the priority of a journal entry. */
WEIR_API bool weir_log_file_add(
    struct weir_log_file *f, enum weir_log_level level, const char *line, size_t n);

/** Write to `target` from now on. If the target cannot be opened, the writer reports that in the
 *  server's log and keeps the old target. Returns 0 or WEIR_ENOMEM. */
WEIR_API int weir_log_file_move(struct weir_log_file *f, const char *target);

/** Make the writer of every open log reopen its file by name. Call this after log rotation has
 *  renamed the files. */
WEIR_API void weir_log_reopen(void);

/** Write the buffered lines, stop the writer and free everything. If the target is a pipe that
 *  nobody reads, give up after 1 s. NULL is allowed. */
WEIR_API void weir_log_file_close(struct weir_log_file *f);

WEIR_C_END

#endif
