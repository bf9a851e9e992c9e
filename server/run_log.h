/* SPDX-License-Identifier: MIT */
/* Writes the log of a running server as configured by `log:`. Used by the main thread and the
 * reload thread, but never by both at the same time. */
#ifndef WEIR_SERVER_RUN_LOG_H
#define WEIR_SERVER_RUN_LOG_H

#include <weir/log.h>
#include <weir/spec.h>

/** Check whether the log could be written as configured by `log`, without creating a file. Returns
 *  0, or an error with its location in `errs`. */
int run_log_check(const struct weir_log_spec *log, struct weir_errs *errs);

/** Start writing the log as configured by `log`, with a separate writer thread. Returns 0, or an
 *  error with its location in `errs`. */
int run_log_begin(const struct weir_log_spec *log, struct weir_errs *errs);

/** Change to another configuration while the server is running. If the new file cannot be opened,
 *  that is logged, and the current file remains in use. */
void run_log_change(const struct weir_log_spec *log);

/** Print a message of the server `name`, formatted as by printf, on stderr for the user who started
 *  the server. If the log has another target, the message is logged as well. The text is truncated
 *  to 799 bytes. May be called by any thread, but not while another thread changes the log. */
void run_log_say(const char *name, enum weir_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Write buffered lines and close the log. Later lines are written to stderr. */
void run_log_end(void);

#endif
