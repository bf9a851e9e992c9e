/* SPDX-License-Identifier: MIT */
/*
 * The line writer: every line that was taken is in the file once and whole, in order per thread;
 * memory is bounded while the file is stuck, and what has no room is refused; bytes are escaped.
 */
#include "http/access_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cunit_main.h"

enum { THREADS = 4, LINES = 5000 };

static int open_temp(void)
{
	char name[] = "/tmp/weir_writer_XXXXXX";
	int fd = mkstemp(name);

	unlink(name);
	return fd;
}

struct adder {
	pthread_t thread;
	struct log_writer *w;
	int id, taken;
};

static void *add_main(void *arg)
{
	struct adder *a = arg;
	char line[64];

	for (int i = 0; i < LINES; i++) {
		int n = snprintf(line, sizeof(line), "%d %d\n", a->id, a->taken);
		a->taken += log_writer_add(a->w, line, (size_t)n);
	}
	return NULL;
}

static void test_threads(void)
{
	struct log_writer w;
	struct adder a[THREADS];
	int next[THREADS] = {0}, fd = open_temp(), id, number;
	FILE *f;

	CU_ASSERT_EQUAL_FATAL(log_writer_init(&w, fd, 1 << 20, 1000000), 0);
	CU_ASSERT_EQUAL_FATAL(log_writer_start(&w), 0);
	for (int i = 0; i < THREADS; i++) {
		a[i] = (struct adder){.w = &w, .id = i};
		pthread_create(&a[i].thread, NULL, add_main, &a[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(a[i].thread, NULL);
	log_writer_fini(&w);
	lseek(fd, 0, SEEK_SET);
	f = fdopen(fd, "r");
	while (fscanf(f, "%d %d\n", &id, &number) == 2) {
		CU_ASSERT_FATAL(id >= 0 && id < THREADS);
		CU_ASSERT_EQUAL(number, next[id]);
		next[id]++;
	}
	for (int i = 0; i < THREADS; i++)
		CU_ASSERT(next[i] == LINES && a[i].taken == LINES);
	fclose(f);
}

static void *drain_main(void *arg)
{
	char text[4096];

	while (read(*(int *)arg, text, sizeof(text)) > 0)
		continue;
	return NULL;
}

/* A pipe that nobody reads for now. */
static void test_stuck(void)
{
	struct log_writer w;
	pthread_t reader;
	char line[1024];
	int fd[2], taken = 0;

	memset(line, 'x', sizeof(line));
	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	CU_ASSERT_EQUAL_FATAL(log_writer_init(&w, fd[1], 16384, 0), 0);
	CU_ASSERT_EQUAL_FATAL(log_writer_start(&w), 0);
	while (taken < 10000 && log_writer_add(&w, line, sizeof(line)))
		taken++;
	CU_ASSERT(taken >= 16);
	CU_ASSERT(taken < 10000); /* refused, not blocked */
	pthread_create(&reader, NULL, drain_main, &fd[0]);
	log_writer_fini(&w);
	close(fd[1]);
	pthread_join(reader, NULL);
	close(fd[0]);
}

static void test_never_started(void)
{
	struct log_writer w;
	char text[16] = "";
	int fd = open_temp();

	CU_ASSERT_EQUAL_FATAL(log_writer_init(&w, fd, 64, 0), 0);
	CU_ASSERT(log_writer_add(&w, "line\n", 5));
	CU_ASSERT_FALSE(log_writer_add(&w, text, 60));
	log_writer_fini(&w);
	CU_ASSERT_EQUAL(pread(fd, text, sizeof(text), 0), 5);
	close(fd);
}

static void expect_quoted(const char *p, size_t n, size_t most, const char *expected)
{
	char out[256];
	size_t len = log_quote(out, 0, (struct weir_slice){p, n}, most);

	out[len] = '\0';
	CU_ASSERT_STRING_EQUAL(out, expected);
}

static void test_quote(void)
{
	expect_quoted("", 0, 10, "\"\"");
	expect_quoted("plain", 5, 10, "\"plain\"");
	expect_quoted("a\"b\\c", 5, 10, "\"a\\\"b\\\\c\"");
	expect_quoted("\r\n\0\x1b\x7f\xff", 6, 10, "\"\\x0d\\x0a\\x00\\x1b\\x7f\\xff\"");
	expect_quoted("0123456789", 10, 10, "\"0123456789\"");
	expect_quoted("0123456789a", 11, 10, "\"0123456789...\"");
}

CUNIT_MAIN("log writer", {"threads", test_threads}, {"stuck file", test_stuck},
    {"never started", test_never_started}, {"quote", test_quote})
