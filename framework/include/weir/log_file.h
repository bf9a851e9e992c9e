/* SPDX-License-Identifier: MIT */
/*
 * Where lines of logs go: from many threads, to one file, written by one thread.
 *
 * A line is appended to a buffer under a mutex; the writer thread takes the whole buffer, leaves an empty one, and writes
 * outside the lock. So neither a slow disk nor a pipe that nobody reads holds up a request, there is one system call per
 * buffer, and memory is bounded: two buffers. When both are full the line is refused, which its owner counts.
 *
 *   opened --start--> the file is there, the writer runs --close--> what is there is written, the writer ends
 *
 * | call                             | who                                          |
 * |----------------------------------|----------------------------------------------|
 * | weir_log_file_add                | any thread; a mutex for the time of a copy   |
 * | weir_log_file_move, weir_log_reopen | any thread; the writer does it, soon      |
 * | the others                       | the owner                                    |
 */
#ifndef WEIR_LOG_FILE_H
#define WEIR_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/log.h>

struct weir_log_file;

/**
 * Open `target`: the path of a file to append to, `stderr`, `stdout`, `journal` (systemd's; every line
 * an entry with its priority) or `journal:SOCKET` for the journal of another namespace. Two buffers of `buffer_bytes`; a line
 * may wait `flush_ns` for others to be written with it. A file that is not there is not made yet, so that who only checks a
 * configuration leaves nothing behind; that it could not be is an error already. Nor is a FIFO opened yet, whose reader would take the end
 * of a look for that of the log. 0 and *out, or WEIR_ENOMEM, WEIR_ESYS with a sentence in `err`.
 */
WEIR_API int weir_log_file_open(const char *target, size_t buffer_bytes, int64_t flush_ns,
    struct weir_log_file **out, struct weir_err *err);

/** Make the file if it is not there (mode 0640), and start the writer, a thread called `name`. Until then lines stay in the
 *  buffer. 0, or WEIR_ESYS, WEIR_ENOMEM with a sentence in `err`. */
WEIR_API int weir_log_file_start(struct weir_log_file *f, const char *name, struct weir_err *err);

/** Append line[0..n), which ends with a newline and has no other. False when there is no room: the line is lost. `level` is
 *  the priority of a journal's entry. */
WEIR_API bool weir_log_file_add(
    struct weir_log_file *f, enum weir_log_level level, const char *line, size_t n);

/** From now on write to `target`. Where it can not be opened the writer says so in the server's log and stays where it is.
 *  0 or WEIR_ENOMEM. */
WEIR_API int weir_log_file_move(struct weir_log_file *f, const char *target);

/** Every open log file closes its file and opens it by its name again: whoever rotates logs has renamed it. */
WEIR_API void weir_log_reopen(void);

/** Write what is there, end the writer, free all. A pipe that nobody reads is given up after a second. NULL is allowed. */
WEIR_API void weir_log_file_close(struct weir_log_file *f);

#endif
