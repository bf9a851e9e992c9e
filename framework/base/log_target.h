/* SPDX-License-Identifier: MIT */
/*
 * Destinations of a log: a file, stdout, stderr or systemd's journal. Each is used by one thread at
 * a time.
 *
 * Lines are passed in the format of the buffers in log_file.c: a byte that marks the level, the
 * line, and a newline.
 */
#ifndef WEIR_BASE_LOG_TARGET_H
#define WEIR_BASE_LOG_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/error.h>
#include <weir/log.h>

struct log_target {
	int fd;        /* -1 if the journal is not reachable, or the file is not open yet */
	bool own;      /* log_target_close must close fd */
	bool regular;  /* a regular file, whose writes never block for long */
	bool absent;   /* not open yet: a file that could be created, or a FIFO */
	bool failed;   /* the first loss of lines has been logged */
	char *journal; /* path of the journal's socket, owned; NULL for other targets */
};

/** Return the byte that marks a line of `level`: the syslog priority as a digit. */
char log_target_mark(enum weir_log_level level);

/** Open `name`, a target of weir_log_file_open. If `make`, a missing file is created with mode
 *  0640; otherwise the call only checks that it could be created, and sets `absent`. Returns 0,
 *  WEIR_ENOMEM, or WEIR_ESYS with a message in `err`. An unreachable journal is not an error, since
 *  each write tries to connect again. */
int log_target_open(struct log_target *t, const char *name, bool make, struct weir_err *err);

/** Replace the open target with `name`. If that fails, log the failure and leave `t` unchanged. */
void log_target_move(struct log_target *t, const char *name);

/** Write the marked lines p[0..n). Overwrites p. Waits for a slow reader, but gives up a second
 *  after `stop(arg)` first returns true. Only the first loss of lines is logged. */
void log_target_write(struct log_target *t, char *p, size_t n, bool (*stop)(void *arg), void *arg);

void log_target_close(struct log_target *t);

#endif
