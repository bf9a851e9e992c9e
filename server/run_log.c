/* SPDX-License-Identifier: MIT */
/* Manages the server's log; see run_log.h. */
#include "run_log.h"

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/log_file.h>

/* Size of each of two buffers. 64 KiB is a guess: the buffers hold about 600 lines while the writer
 * is stuck. */
#define LOG_BYTES (64 * 1024)

static struct weir_log_file *run_log;

/* The current target. A longer name is truncated and therefore never equals the configured one, so
 * each reload opens the log again. */
static char run_log_name[PATH_MAX];

/* whether the log is written to another target than stderr */
static atomic_bool run_log_elsewhere;

static void shape(const struct weir_log_spec *log)
{
	weir_log_set_level((enum weir_log_level)log->level);
	weir_log_set_format((enum weir_log_format)log->format);
}

static int refuse(
    const struct weir_log_spec *log, int rc, const struct weir_err *err, struct weir_errs *errs)
{
	return weir_errs_add(errs, &log->mark, rc, err->hint[0] ? err->hint : NULL, "the log: %s",
	    err->text[0] ? err->text : weir_error_text(rc));
}

static void note_where(const struct weir_log_spec *log)
{
	atomic_store(&run_log_elsewhere, strcmp(log->file, "stderr") != 0);
	snprintf(run_log_name, sizeof(run_log_name), "%s", log->file);
}

int run_log_check(const struct weir_log_spec *log, struct weir_errs *errs)
{
	struct weir_err err = {0};
	struct weir_log_file *f;

	/* The target is unchanged and already open. It stays in use, even if it could not be opened
	 * again. */
	if (run_log && strcmp(log->file, run_log_name) == 0)
		return 0;
	int rc = weir_log_file_open(log->file, LOG_BYTES, 0, &f, &err);

	weir_log_file_close(f);
	return rc == 0 ? 0 : refuse(log, rc, &err, errs);
}

int run_log_begin(const struct weir_log_spec *log, struct weir_errs *errs)
{
	struct weir_err err = {0};
	int rc = weir_log_file_open(log->file, LOG_BYTES, 0, &run_log, &err);

	if (rc == 0)
		rc = weir_log_file_start(run_log, "log", &err);
	if (rc != 0) {
		weir_log_file_close(run_log);
		run_log = NULL;
		return refuse(log, rc, &err, errs);
	}
	shape(log);
	weir_log_set_file(run_log);
	note_where(log);
	return 0;
}

void run_log_change(const struct weir_log_spec *log)
{
	shape(log);
	if (weir_log_file_move(run_log, log->file) != 0)
		weir_log(WEIR_LOG_ERROR,
		    "log: out of memory, so the log is still written to the previous file");
	else
		note_where(log);
}

void run_log_say(const char *name, enum weir_log_level level, const char *fmt, ...)
{
	char text[800]; /* enough for a drain report that names three threads */
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "weir %s: %s\n", name, text);
	if (atomic_load(&run_log_elsewhere))
		weir_log(level, "%s: %s", name, text);
}

void run_log_end(void)
{
	weir_log_set_file(NULL);
	weir_log_file_close(run_log);
	run_log = NULL;
	atomic_store(&run_log_elsewhere, false);
}
