/* SPDX-License-Identifier: MIT */
/* The log: line format, escaping, levels, one write per line from many threads. */
#include <weir/log_file.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cunit_main.h"

#define THREADS 4
#define LINES   200

/* A file that receives the log. */
struct sink {
	int fd;
	char path[64];
};

static void sink_open(struct sink *s)
{
	snprintf(s->path, sizeof(s->path), "test_log.XXXXXX");
	s->fd = mkstemp(s->path);
	CU_ASSERT_FATAL(s->fd >= 0);
	weir_log_set_fd(s->fd);
}

static char *sink_close(struct sink *s)
{
	static char text[THREADS * LINES * 256];

	weir_log_set_fd(STDERR_FILENO);
	ssize_t n = pread(s->fd, text, sizeof(text) - 1, 0);
	CU_ASSERT_FATAL(n >= 0);
	text[n] = '\0';
	close(s->fd);
	unlink(s->path);
	return text;
}

static bool matches(const char *text, const char *pattern)
{
	regex_t re;

	CU_ASSERT_EQUAL_FATAL(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	int rc = regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return rc == 0;
}

static void test_shape(void)
{
	struct sink s;

	pthread_setname_np(pthread_self(), "disk/0");
	sink_open(&s);
	errno = 77;
	weir_log(WEIR_LOG_WARN, "queue of %s is at %d", "disk", 7);
	CU_ASSERT_EQUAL(errno, 77);
	CU_ASSERT_TRUE(matches(sink_close(&s),
	    "^ts=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z level=warn "
	    "thread=disk/0 msg=\"queue of disk is at 7\"\n$"));
}

static void test_escapes(void)
{
	struct sink s;

	pthread_setname_np(pthread_self(), "a b=\"");
	sink_open(&s);
	weir_log(WEIR_LOG_ERROR, "%s", "x\nlevel=info msg=\"forged\"\t\x1b[2J\\ \x7f ö \xff");
	const char *line = sink_close(&s);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, " thread=\"a b=\\\"\" msg=\"x\\nlevel=info "
					    "msg=\\\"forged\\\"\\t\\x1b[2J\\\\ \\x7f ö \\xff\"\n"));
	CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + strlen(line) - 1);
}

static void test_json(void)
{
	struct sink s;

	pthread_setname_np(pthread_self(), "a\"\x01");
	sink_open(&s);
	weir_log_set_format(WEIR_LOG_JSON);
	weir_log(WEIR_LOG_ERROR, "%s", "x\n\"\\ \x7f ö \xff");
	weir_log_set_format(WEIR_LOG_LOGFMT);
	const char *line = sink_close(&s);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(line, "Z\",\"level\":\"error\",\"thread\":\"a\\\"\\\\x01\",\"msg\":"
			 "\"x\\\\n\\\"\\\\\\\\ \\\\x7f ö \\\\xff\"}\n"));
	CU_ASSERT_EQUAL(strncmp(line, "{\"ts\":\"20", 9), 0);
	CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + strlen(line) - 1);
	pthread_setname_np(pthread_self(), "test");
}

/* Lines go to the log file if there is one. Lines that do not fit are counted, and their number is
 * reported before the next line that fits. */
static void test_file(void)
{
	struct weir_log_file *f;
	struct weir_err err = {0};
	struct sink s;

	sink_open(&s);
	CU_ASSERT_EQUAL_FATAL(weir_log_file_open(s.path, 700, 0, &f, &err), 0);
	weir_log_set_file(f);
	for (int i = 0; i < 20; i++)
		weir_log(WEIR_LOG_INFO, "line %d", i);
	CU_ASSERT_EQUAL_FATAL(weir_log_file_start(f, "test", &err), 0);
	while (lseek(s.fd, 0, SEEK_END) == 0)
		sched_yield();
	weir_log(WEIR_LOG_INFO, "after");
	weir_log_set_file(NULL);
	weir_log_file_close(f);
	const char *text = sink_close(&s);
	int in_file = 0;
	for (const char *p = text; (p = strstr(p, "msg=\"line ")); p++)
		in_file++;
	char want[80];
	snprintf(want, sizeof(want), "msg=\"%d lines were lost", 20 - in_file);
	CU_ASSERT(in_file > 5 && in_file < 20);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, want));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "msg=\"after\""));
}

static void test_levels(void)
{
	struct sink s;

	sink_open(&s);
	weir_log(WEIR_LOG_DEBUG, "no");
	weir_log_set_level(WEIR_LOG_DEBUG);
	weir_log(WEIR_LOG_DEBUG, "yes");
	weir_log_set_level(WEIR_LOG_ERROR);
	weir_log(WEIR_LOG_WARN, "no");
	weir_log_set_fd(-1);
	weir_log(WEIR_LOG_ERROR, "no");
	weir_log_set_level(WEIR_LOG_INFO);
	const char *text = sink_close(&s);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "level=debug"));
	CU_ASSERT_PTR_NULL(strstr(text, "no"));
}

/* A line over the maximum length is cut and still ends with a newline. */
static void test_long(void)
{
	static char text[10000];
	struct sink s;

	memset(text, '\n', sizeof(text) - 1);
	sink_open(&s);
	weir_log(WEIR_LOG_INFO, "%s", text);
	const char *line = sink_close(&s);
	CU_ASSERT_TRUE(strlen(line) <= 2048 && strlen(line) > 2000);
	CU_ASSERT_STRING_EQUAL(line + strlen(line) - 4, "\\n\"\n");
}

static void *write_lines(void *arg)
{
	for (int i = 0; i < LINES; i++)
		weir_log(WEIR_LOG_INFO, "%s", (const char *)arg);
	return NULL;
}

static void test_threads(void)
{
	static const char *const words[THREADS] = {"aaaaaaaaaaaaaaaa",
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccc",
	    "dddddddddddddddddddddddddddddddddddddddddd"};
	pthread_t thread[THREADS];
	struct sink s;
	int lines = 0;

	sink_open(&s);
	fcntl(s.fd, F_SETFL, O_APPEND);
	for (int i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(
		    pthread_create(&thread[i], NULL, write_lines, (void *)(uintptr_t)words[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	char *save, *text = sink_close(&s);
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save), lines++)
		CU_ASSERT_TRUE(matches(l, "^ts=[^ ]+ level=info .* msg=\"(a+|b+|c+|d+)\"$"));
	CU_ASSERT_EQUAL(lines, THREADS * LINES);
}

static void test_first(void)
{
	static bool flag;

	CU_ASSERT_TRUE(weir_log_first(&flag));
	CU_ASSERT_FALSE(weir_log_first(&flag));
}

CUNIT_MAIN("log", {"shape", test_shape}, {"escapes", test_escapes}, {"json", test_json},
    {"file", test_file}, {"levels", test_levels}, {"long", test_long}, {"threads", test_threads},
    {"first", test_first})
