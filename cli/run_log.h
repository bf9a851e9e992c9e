/* SPDX-License-Identifier: MIT */
/* The server's log while a server runs: where `log:` sends it. Main and the reloader, one at a time. */
#ifndef WEIR_CLI_RUN_LOG_H
#define WEIR_CLI_RUN_LOG_H

#include <weir/log.h>
#include <weir/spec.h>

/** Could lines go where `log` says? Makes no file. 0, or an error with its place in `errs`. */
int run_log_check(const struct weir_log_spec *log, struct weir_errs *errs);

/** From now on lines go where `log` says, by a writer of their own. 0, or an error with its place in `errs`. */
int run_log_begin(const struct weir_log_spec *log, struct weir_errs *errs);

/** The same while it runs, for another `log`. Where its file can not be opened the log says so and stays. */
void run_log_change(const struct weir_log_spec *log);

/** Say `fmt`, as printf has it, at most 400 bytes, of the server `name`: to stderr for who started it, and as a line of the log where that
 *  is elsewhere. Any thread that does not change the log. */
void run_log_say(const char *name, enum weir_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Write what is there; lines go to stderr again. */
void run_log_end(void);

#endif
