/* SPDX-License-Identifier: MIT */
/* Log files: every accepted line is in the file once and whole, in order per thread. Memory is
 * bounded while nobody takes lines, and lines that do not fit are refused. Files are reopened by
 * name; the journal receives entries. */
#include <weir/log_file.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cunit_main.h"

enum { THREADS = 4, LINES = 5000 };

static char folder[] = "/tmp/weir-log-XXXXXX";
static char path[64], other[64];

static void begin(void)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(other, sizeof(other), "%s/log.1", folder);
}

static void end(void)
{
	unlink(path);
	unlink(other);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static struct weir_log_file *opened(const char *target, size_t bytes, int64_t flush_ns)
{
	struct weir_log_file *f = NULL;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL_FATAL(weir_log_file_open(target, bytes, flush_ns, &f, &err), 0);
	return f;
}

static struct weir_log_file *started(const char *target, size_t bytes, int64_t flush_ns)
{
	struct weir_log_file *f = opened(target, bytes, flush_ns);
	struct weir_err err = {0};

	CU_ASSERT_EQUAL_FATAL(weir_log_file_start(f, "test", &err), 0);
	return f;
}

static bool add(struct weir_log_file *f, const char *line)
{
	return weir_log_file_add(f, WEIR_LOG_INFO, line, strlen(line));
}

/* Content of the file `name`, "" if it does not exist. Static memory. */
static const char *content(const char *name)
{
	static char text[4096];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? 0 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd != -1)
		close(fd);
	return text;
}

/* Wait for the writer. The test runner ends a test that waits forever. */
static void await(const char *name, const char *want)
{
	while (strcmp(content(name), want) != 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

struct adder {
	pthread_t thread;
	struct weir_log_file *f;
	int id, taken;
};

static void *add_main(void *arg)
{
	struct adder *a = arg;
	char line[64];

	for (int i = 0; i < LINES; i++) {
		snprintf(line, sizeof(line), "%d %d\n", a->id, a->taken);
		a->taken += add(a->f, line);
	}
	return NULL;
}

static void test_threads(void)
{
	struct adder a[THREADS];
	int next[THREADS] = {0}, id, number;

	begin();
	struct weir_log_file *f = started(path, 1 << 20, 1000000);
	for (int i = 0; i < THREADS; i++) {
		a[i] = (struct adder){.f = f, .id = i};
		pthread_create(&a[i].thread, NULL, add_main, &a[i]);
	}
	for (int i = 0; i < 20; i++)
		weir_log_reopen(); /* while lines are being added */
	for (int i = 0; i < THREADS; i++)
		pthread_join(a[i].thread, NULL);
	weir_log_file_close(f);
	FILE *in = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(in);
	while (fscanf(in, "%d %d\n", &id, &number) == 2) {
		CU_ASSERT_FATAL(id >= 0 && id < THREADS);
		CU_ASSERT_EQUAL(number, next[id]);
		next[id]++;
	}
	CU_ASSERT_NOT_EQUAL(feof(in), 0);
	for (int i = 0; i < THREADS; i++)
		CU_ASSERT(next[i] == LINES && a[i].taken == LINES);
	fclose(in);
	end();
}

/* A pipe that nobody reads: lines are refused, no thread blocks, and closing still works. */
static void test_stuck(void)
{
	struct weir_err err = {0};
	struct weir_log_file *f;
	char line[1024];
	int taken = 0;

	memset(line, 'x', sizeof(line) - 2);
	strcpy(line + sizeof(line) - 2, "\n");
	begin();
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL_FATAL(weir_log_file_open(path, 16384, 0, &f, &err), 0);
	CU_ASSERT_EQUAL(weir_log_file_start(f, "log", &err), WEIR_ESYS); /* no reader */
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be opened for writing"));
	weir_log_file_close(f);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	f = started(path, 16384, 0);
	while (taken < 10000 && add(f, line))
		taken++;
	CU_ASSERT(taken >= 15);
	CU_ASSERT(taken < 10000);
	weir_log_set_fd(-1); /* the server's own log would report the lost lines */
	weir_log_file_close(f);
	weir_log_set_fd(STDERR_FILENO);
	close(fd);
	end();
}

static void test_never_started(void)
{
	begin();
	struct weir_log_file *f = opened(path, 64, 0);
	CU_ASSERT_TRUE(add(f, "line\n"));
	CU_ASSERT_FALSE(weir_log_file_add(f, WEIR_LOG_INFO, path, 58)); /* one byte too long */
	weir_log_file_close(f);
	CU_ASSERT_STRING_EQUAL(content(path), "line\n");
	end();
	weir_log_file_close(NULL);
}

static void test_reopen(void)
{
	begin();
	struct weir_log_file *f = started(path, 4096, 0);
	add(f, "one\n");
	await(path, "one\n");
	CU_ASSERT_EQUAL(rename(path, other), 0);
	add(f, "two\n"); /* still in the renamed file */
	await(other, "one\ntwo\n");
	weir_log_reopen();
	while (access(path, F_OK) != 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	add(f, "three\n");
	await(path, "three\n");
	CU_ASSERT_STRING_EQUAL(content(other), "one\ntwo\n");
	CU_ASSERT_EQUAL(weir_log_file_move(f, other), 0);
	add(f, "four\n");
	weir_log_file_close(f);
	/* The line was added either before the writer saw the request to reopen, or after it. */
	CU_ASSERT(strcmp(content(other), "one\ntwo\nfour\n") == 0 ||
		  strcmp(content(path), "three\nfour\n") == 0);
	end();
}

static void await_file(const char *name)
{
	while (access(name, F_OK) != 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* A log that was moved is reopened at its new path. */
static void test_moved_then_reopened(void)
{
	begin();
	struct weir_log_file *f = started(path, 4096, 0);
	CU_ASSERT_EQUAL(weir_log_file_move(f, other), 0);
	await_file(other);
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(unlink(other), 0);
	weir_log_reopen();
	await_file(other);
	add(f, "one\n");
	await(other, "one\n");
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	weir_log_file_close(f);
	end();
}

/* Reopening several logs works whichever of them have been closed since. */
static void test_several(void)
{
	struct weir_log_file *f[4];

	begin();
	for (int i = 0; i < 4; i++)
		f[i] = started(path, 4096, 0);
	/* Close one in the middle, then the first and the last one opened. */
	weir_log_file_close(f[1]);
	weir_log_file_close(f[0]);
	weir_log_file_close(f[3]);
	CU_ASSERT_EQUAL(unlink(path), 0);
	weir_log_reopen();
	await_file(path);
	add(f[2], "one\n");
	await(path, "one\n");
	weir_log_file_close(f[2]);
	end();
}

/* A log that cannot be reopened keeps writing to the old file. */
static void test_stays(void)
{
	char nowhere[160];

	begin();
	snprintf(nowhere, sizeof(nowhere), "%s/none/log", folder);
	struct weir_log_file *f = started(path, 4096, 0);
	weir_log_set_fd(-1);
	CU_ASSERT_EQUAL(weir_log_file_move(f, nowhere), 0);
	add(f, "one\n");
	await(path, "one\n");
	weir_log_reopen();
	add(f, "two\n");
	weir_log_file_close(f);
	weir_log_set_fd(STDERR_FILENO);
	CU_ASSERT_STRING_EQUAL(content(path), "one\ntwo\n");
	end();
}

/* A reopen takes effect at once, although the writer could wait an hour for more lines. Lines that
 * are already waiting go to the old file. */
static void test_moved_at_once(void)
{
	begin();
	struct weir_log_file *f = started(path, 4096, 3600000000000LL);
	add(f, "one\n");
	CU_ASSERT_EQUAL(rename(path, other), 0);
	weir_log_reopen();
	await(other, "one\n");
	while (access(path, F_OK) != 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	weir_log_file_close(f);
	end();
}

/* A line that just fits is accepted, but not one byte more. */
static void test_exact(void)
{
	enum { BYTES = 4096 };
	char line[BYTES];
	struct stat st;

	begin();
	struct weir_log_file *f = opened(path, BYTES, 0);
	memset(line, 'a', BYTES);
	line[BYTES - 2] = '\n';
	CU_ASSERT_FALSE(weir_log_file_add(f, WEIR_LOG_INFO, line, BYTES));
	CU_ASSERT_TRUE(weir_log_file_add(f, WEIR_LOG_INFO, line, BYTES - 1));
	CU_ASSERT_FALSE(add(f, "\n"));
	weir_log_file_close(f);
	CU_ASSERT(stat(path, &st) == 0 && st.st_size == BYTES - 1);
	end();
}

/* ---- the journal ---- */

static int journal_bind(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void expect_entry(int fd, const char *want)
{
	char text[512];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	CU_ASSERT_FATAL(n > 0);
	text[n] = '\0';
	CU_ASSERT_STRING_EQUAL(text, want);
}

static void test_journal(void)
{
	char target[160];

	begin();
	snprintf(target, sizeof(target), "journal:%s", path);
	int fd = journal_bind();
	struct weir_log_file *f = started(target, 4096, 0);
	CU_ASSERT_TRUE(weir_log_file_add(f, WEIR_LOG_ERROR, "bad\n", 4));
	CU_ASSERT_TRUE(weir_log_file_add(f, WEIR_LOG_DEBUG, "so so\n", 6));
	expect_entry(fd, "SYSLOG_IDENTIFIER=weir\nPRIORITY=3\nMESSAGE=bad\n");
	expect_entry(fd, "SYSLOG_IDENTIFIER=weir\nPRIORITY=7\nMESSAGE=so so\n");
	close(fd);
	unlink(path); /* the journal restarts */
	fd = journal_bind();
	CU_ASSERT_TRUE(weir_log_file_add(f, WEIR_LOG_WARN, "again\n", 6));
	expect_entry(fd, "SYSLOG_IDENTIFIER=weir\nPRIORITY=4\nMESSAGE=again\n");
	weir_log_file_close(f);
	close(fd);
	end();
}

/* A missing journal prevents neither start nor close. */
static void test_no_journal(void)
{
	char target[300];
	struct weir_log_file *f = NULL;
	struct weir_err err = {0};

	begin();
	snprintf(target, sizeof(target), "journal:%s", path);
	f = started(target, 4096, 0);
	weir_log_set_fd(-1);
	CU_ASSERT_TRUE(add(f, "nowhere\n"));
	weir_log_file_close(f);
	weir_log_set_fd(STDERR_FILENO);
	memset(target + 8, 'a', 200);
	target[208] = '\0';
	CU_ASSERT_EQUAL(weir_log_file_open(target, 4096, 0, &f, &err), WEIR_ESYS);
	CU_ASSERT_EQUAL(weir_log_file_open("journal:", 4096, 0, &f, &err), WEIR_ESYS);
	CU_ASSERT_EQUAL(weir_log_file_open("/", 4096, 0, &f, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NULL(f);
	end();
}

/* Logs that share a pipe do not tear each other's lines: every write ends at the end of a line. A
 * pipe in packet mode shows the writes. */
static void test_whole_lines(void)
{
	enum { MANY = 300 };
	char packet[8192];
	int fd[2], kept = dup(STDERR_FILENO), lines = 0;

	CU_ASSERT_EQUAL_FATAL(pipe2(fd, O_DIRECT | O_CLOEXEC), 0);
	struct weir_log_file *f = opened("stderr", 65536, 0);
	for (int i = 0; i < MANY; i++)
		CU_ASSERT(add(f, "a line whose length is no divisor of 4096\n"));
	fflush(stderr);
	dup2(fd[1], STDERR_FILENO);
	weir_log_file_close(f);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(fd[1]);
	for (ssize_t n; (n = read(fd[0], packet, sizeof(packet))) > 0;) {
		CU_ASSERT_EQUAL(packet[n - 1], '\n');
		CU_ASSERT_EQUAL(packet[0], 'a');
		for (ssize_t i = 0; i < n; i++)
			lines += packet[i] == '\n';
	}
	CU_ASSERT_EQUAL(lines, MANY);
	close(fd[0]);
}

/* Half a buffer is written without waiting for more lines, although the writer could wait an
 * hour. */
static void test_half_full(void)
{
	enum { BYTES = 16384 };
	struct timespec rest = {.tv_nsec = 1000000};
	struct stat st = {0};
	char line[1025];

	begin();
	memset(line, 'a', 1023);
	memcpy(line + 1023, "\n", 2);
	struct weir_log_file *f = started(path, BYTES, 3600000000000LL);
	CU_ASSERT(add(f, line));
	nanosleep(&rest, NULL); /* most likely the writer sleeps again */
	for (int i = 0; i < 8; i++)
		CU_ASSERT(add(f, line));
	for (int i = 0; i < 20000 && st.st_size == 0; i++) {
		nanosleep(&rest, NULL);
		CU_ASSERT_EQUAL(stat(path, &st), 0);
	}
	CU_ASSERT(st.st_size > 0);
	weir_log_file_close(f);
	end();
}

enum { LONG = 6000, LONG_LINES = 4000 };

static void *add_long(void *arg)
{
	struct weir_log_file *f = arg;
	static atomic_int turn;
	char line[LONG];

	memset(line, 'a' + atomic_fetch_add(&turn, 1) % 26, LONG);
	line[LONG - 1] = '\n';
	for (int i = 0; i < LONG_LINES; i++)
		while (!weir_log_file_add(f, WEIR_LOG_INFO, line, LONG))
			sched_yield();
	return NULL;
}

/* Number of lines of LONG equal bytes in `name`; -1 if one is torn. */
static int long_lines(const char *name)
{
	FILE *in = fopen(name, "r");
	char line[2 * LONG];
	int n = 0;

	for (; fgets(line, sizeof(line), in); n++)
		if (strlen(line) != LONG || strspn(line, (char[]){line[0], '\0'}) != LONG - 1) {
			n = -1;
			break;
		}
	fclose(in);
	return n;
}

/* Logs that share a file do not tear each other's lines either, even lines longer than a pipe takes
 * at once. Tested with the file opened by name, and as redirected by a shell. */
static void test_long_lines(void)
{
	for (int redirected = 0; redirected < 2; redirected++) {
		struct weir_log_file *f[2];
		pthread_t thread[2];
		begin();
		int kept = dup(STDERR_FILENO);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (redirected)
			dup2(fd, STDERR_FILENO);
		for (int i = 0; i < 2; i++)
			f[i] = started(redirected ? "stderr" : path, 4 * LONG, 0);
		for (int i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL, add_long, f[i]);
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		for (int i = 0; i < 2; i++)
			weir_log_file_close(f[i]);
		dup2(kept, STDERR_FILENO);
		close(kept);
		close(fd);
		CU_ASSERT_EQUAL(long_lines(path), 2 * LONG_LINES);
		end();
	}
}

CUNIT_MAIN("log files", {"threads", test_threads}, {"stuck file", test_stuck},
    {"never started", test_never_started}, {"opened again", test_reopen},
    {"moved, then opened again", test_moved_then_reopened}, {"several", test_several},
    {"half full", test_half_full}, {"stays", test_stays}, {"moved at once", test_moved_at_once},
    {"just fits", test_exact}, {"journal", test_journal}, {"no journal", test_no_journal},
    {"whole lines", test_whole_lines}, {"long lines", test_long_lines})
