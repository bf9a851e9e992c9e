/* SPDX-License-Identifier: MIT */
/*
 * What a log is written to: a file, a stream of the process, systemd's journal. One thread at a time.
 *
 * Lines come as the buffers of log_file.c have them: a mark of the level (one byte), the line, a newline.
 */
#ifndef WEIR_BASE_LOG_TARGET_H
#define WEIR_BASE_LOG_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/error.h>
#include <weir/log.h>

struct log_target {
	int fd;        /* -1: a journal that is not there now, or a file that is not there yet */
	bool own;      /* the descriptor is ours to close */
	bool regular;  /* never blocks for long */
	bool absent;   /* a file that could be made, or a FIFO, and was not to be opened yet */
	bool failed;   /* it was said that lines are lost */
	char *journal; /* its socket, owned; NULL: no journal */
};

/** The byte in front of a line of `level`: the priority of syslog as a digit. */
char log_target_mark(enum weir_log_level level);

/** Open `name`, as weir_log_file_open takes it. A file that is not there is made (mode 0640) when `make` says so; else it is
 *  looked whether it could be, `absent`. 0, WEIR_ENOMEM, or WEIR_ESYS with a sentence. A journal that is not there is no error: it is tried
 *  again with every run of lines. */
int log_target_open(struct log_target *t, const char *name, bool make, struct weir_err *err);

/** Open `name` in place of what is open; if that fails it is logged and `t` stays as it is. */
void log_target_move(struct log_target *t, const char *name);

/** Write the marked lines p[0..n), which this may change. Waits for who does not read, until `stop(arg)` and a second more.
 *  What is lost is logged once. */
void log_target_write(struct log_target *t, char *p, size_t n, bool (*stop)(void *arg), void *arg);

void log_target_close(struct log_target *t);

#endif
