/* SPDX-License-Identifier: MIT */
/* The server's log while a server runs: where `log:` sends it. Main and the reloader, one at a time. */
#ifndef WEIR_CLI_RUN_LOG_H
#define WEIR_CLI_RUN_LOG_H

#include <weir/spec.h>

/** Could lines go where `log` says? Makes no file. 0, or an error with its place in `errs`. */
int run_log_check(const struct weir_log_spec *log, struct weir_errs *errs);

/** From now on lines go where `log` says, by a writer of their own. 0, or an error with its place in `errs`. */
int run_log_begin(const struct weir_log_spec *log, struct weir_errs *errs);

/** The same while it runs, for another `log`. Where its file can not be opened the log says so and stays. */
void run_log_change(const struct weir_log_spec *log);

/** Write what is there; lines go to stderr again. */
void run_log_end(void);

#endif
