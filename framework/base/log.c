/* SPDX-License-Identifier: MIT */
/*
 * Writes the server's log; see weir/log.h.
 *
 * The thread's name is queried for every line instead of being cached, since a thread may log
 * before its name is set, and the wrong name would then stay in the cache. The query costs a tenth
 * of the write. Logging preserves errno.
 */
#include <weir/log_file.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/* Maximum length of a line. 2048 is a guess; it must be below PIPE_BUF (4096), so that lines
 * written to a pipe are never interleaved. */
#define LINE_BYTES 2048

static atomic_int log_level = WEIR_LOG_INFO;
static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_format = WEIR_LOG_LOGFMT;

/* The log file, if there is one. The lock is held while a line is copied to the buffer, but never
 * while lines are written. */
static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_log_file *log_file WEIR_GUARDED_BY(file_lock);
static int64_t lines_lost WEIR_GUARDED_BY(file_lock); /* lines whose loss was not logged yet */

static const char *level_word(enum weir_log_level level)
{
	static const char *const word[] = {"error", "warn", "info", "debug"};

	return word[level];
}

static void put_time(char *text, size_t size)
{
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	size_t n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, size - n, ".%03ldZ", ts.tv_nsec / 1000000);
}

/* The contents of a log line. */
struct said {
	char ts[40], thread[16];
	const char *level, *text;
};

/* Format a line as logfmt, in which a value with a blank, '=' or a quote must be quoted. */
static size_t put_logfmt(char *line, size_t size, const struct said *s)
{
	char thread[80];

	text_escape(thread, sizeof(thread), s->thread, "\"\\");
	const char *quote = *thread == '\0' || strpbrk(thread, " =\"\\") ? "\"" : "";
	size_t n = (size_t)snprintf(line, size, "ts=%s level=%s thread=%s%s%s msg=\"", s->ts,
	    s->level, quote, thread, quote);
	n += text_escape(line + n, size - n - 2, s->text, "\"\\");
	line[n++] = '"';
	return n;
}

/* Write `in` as the contents of a JSON string. Control bytes and '\' are first escaped as in
 * logfmt, so the decoded string still contains the escapes. */
static size_t put_string(char *out, size_t size, const char *in)
{
	char escaped[LINE_BYTES];

	text_escape(escaped, sizeof(escaped), in, "\\");
	return text_escape(out, size, escaped, "\"\\");
}

static size_t put_json(char *line, size_t size, const struct said *s)
{
	size_t n = (size_t)snprintf(
	    line, size, "{\"ts\":\"%s\",\"level\":\"%s\",\"thread\":\"", s->ts, s->level);

	n += put_string(line + n, 120, s->thread);
	n += (size_t)snprintf(line + n, size - n, "\",\"msg\":\"");
	n += put_string(line + n, size - n - 3, s->text);
	line[n++] = '"';
	line[n++] = '}';
	return n;
}

/* Format `text` as a line that ends in a newline. Returns the length of the line. */
static size_t put_line(char *line, size_t size, enum weir_log_level level, const char *text)
{
	struct said said = {.level = level_word(level), .text = text};
	size_t n;

	put_time(said.ts, sizeof(said.ts));
	pthread_getname_np(pthread_self(), said.thread, sizeof(said.thread));
	if (atomic_load_explicit(&log_format, memory_order_relaxed) == WEIR_LOG_JSON)
		n = put_json(line, size - 1, &said);
	else
		n = put_logfmt(line, size - 1, &said);
	line[n++] = '\n';
	return n;
}

static void write_line(int fd, const char *line, size_t n)
{
	ssize_t rc;

	do
		rc = write(fd, line, n);
	while (rc == -1 && errno == EINTR);
}

/* Log the number of lost lines if the buffer has space for that message now. Called with the lock
 * held. */
static void tell_lost(void)
{
	char line[LINE_BYTES], text[80];

	if (lines_lost == 0)
		return;
	snprintf(text, sizeof(text),
	    "%" PRId64 " lines were lost: the log could not be written in time", lines_lost);
	size_t n = put_line(line, sizeof(line), WEIR_LOG_WARN, text);
	if (weir_log_file_add(log_file, WEIR_LOG_WARN, line, n))
		lines_lost = 0;
}

/* Add a line to the log file. Returns false if there is no log file. A line that does not fit is
 * counted as lost, as are all later lines until the number of lost lines has been logged. */
static bool add_line(enum weir_log_level level, const char *line, size_t n)
{
	pthread_mutex_lock(&file_lock);
	bool there = log_file != NULL;
	if (there) {
		tell_lost();
		lines_lost += lines_lost > 0 || !weir_log_file_add(log_file, level, line, n);
	}
	pthread_mutex_unlock(&file_lock);
	return there;
}

void weir_log(enum weir_log_level level, const char *fmt, ...)
{
	int fd = atomic_load_explicit(&log_fd, memory_order_relaxed), saved = errno;
	char line[LINE_BYTES], text[LINE_BYTES];
	va_list ap;

	if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed) || fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t n = put_line(line, sizeof(line), level, text);
	if (!add_line(level, line, n))
		write_line(fd, line, n);
	errno = saved;
}

void weir_log_set_format(enum weir_log_format format)
{
	atomic_store_explicit(&log_format, (int)format, memory_order_relaxed);
}

void weir_log_set_file(struct weir_log_file *file)
{
	pthread_mutex_lock(&file_lock);
	log_file = file;
	pthread_mutex_unlock(&file_lock);
}

void weir_log_set_level(enum weir_log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

void weir_log_set_fd(int fd)
{
	atomic_store_explicit(&log_fd, fd, memory_order_relaxed);
}
