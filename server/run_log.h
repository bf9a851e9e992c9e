/* SPDX-License-Identifier: MIT */
/* Writes the log of a running server as configured by `log:`. Used by main and the reload thread,
 * one at a time. */
#ifndef WEIR_CLI_RUN_LOG_H
#define WEIR_CLI_RUN_LOG_H

#include <weir/log.h>
#include <weir/spec.h>

/** Check whether lines could be written as `log` says. Creates no file. 0, or an error with its
 *  location in `errs`. */
int run_log_check(const struct weir_log_spec *log, struct weir_errs *errs);

/** From now on write lines as `log` says, by a separate writer thread. 0, or an error with its
 *  location in `errs`. */
int run_log_begin(const struct weir_log_spec *log, struct weir_errs *errs);

/** Change to another `log` while the server runs. If its file cannot be opened, that is logged and
 *  the current one stays. */
void run_log_change(const struct weir_log_spec *log);

/** Print `fmt`, as printf does, for the server `name`: to stderr for the user that started it, and
 *  as a log line if the log goes elsewhere. The text is truncated to 799 bytes. Any thread, but not
 *  while another thread changes the log. */
void run_log_say(const char *name, enum weir_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Write what is buffered; later lines go to stderr again. */
void run_log_end(void);

#endif
