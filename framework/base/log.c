/* SPDX-License-Identifier: MIT */
/*
 * The log: logfmt lines, each one write(2); see log.h.
 *
 * The thread's name is asked for with every line and not kept: a thread is named by the one that
 * made it, so an early line could keep the old name for ever, and the question costs a tenth of the
 * write. errno is the caller's.
 */
#include <weir/log.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/* Longest line, a guess; less than PIPE_BUF (4096), so that lines to a pipe never mix. */
#define LINE_BYTES 2048

static atomic_int log_level = WEIR_LOG_INFO;
static atomic_int log_fd = STDERR_FILENO;

static const char *level_word(enum weir_log_level level)
{
	static const char *const word[] = {"error", "warn", "info", "debug"};

	return word[level];
}

static size_t put_time(char *line, size_t size)
{
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	size_t n = strftime(line, size, "ts=%Y-%m-%dT%H:%M:%S", &tm);
	return n + (size_t)snprintf(line + n, size - n, ".%03ldZ", ts.tv_nsec / 1000000);
}

/* logfmt wants quotes where a value holds a blank, '=' or a quote. */
static size_t put_thread(char *line, size_t size)
{
	char name[16] = "", escaped[80];

	pthread_getname_np(pthread_self(), name, sizeof(name));
	text_escape(escaped, sizeof(escaped), name, "\"\\");
	const char *quote = name[0] == '\0' || strpbrk(escaped, " =\"\\") ? "\"" : "";
	return (size_t)snprintf(line, size, " thread=%s%s%s", quote, escaped, quote);
}

static void write_line(int fd, const char *line, size_t n)
{
	ssize_t rc;

	do
		rc = write(fd, line, n);
	while (rc == -1 && errno == EINTR);
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
	size_t n = put_time(line, sizeof(line));
	n += (size_t)snprintf(line + n, sizeof(line) - n, " level=%s", level_word(level));
	n += put_thread(line + n, sizeof(line) - n);
	n += (size_t)snprintf(line + n, sizeof(line) - n, " msg=\"");
	n += text_escape(line + n, sizeof(line) - n - 2, text, "\"\\");
	line[n++] = '"';
	line[n++] = '\n';
	write_line(fd, line, n);
	errno = saved;
}

void weir_log_set_level(enum weir_log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

void weir_log_set_fd(int fd)
{
	atomic_store_explicit(&log_fd, fd, memory_order_relaxed);
}
