/* SPDX-License-Identifier: MIT */
/*
 * A disk that is slow or hangs: the admin thread continues to answer, the file lags and catches up,
 * and the server can stop. Writes go to the pwrite of this file, which blocks for as long as a test
 * wants.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/log.h>

#include "admin/admin.h"
#include "client.h"
#include "cunit_main.h"
#include "admin/history/history_file.h"
#include "made_up.h"

#define T0 1700000000LL

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool held;     /* writes block until it is false */
	int waiting;   /* writes that block */
	int begun;     /* so far */
	size_t bytes;  /* of the newest one */
	sigset_t mask; /* of the thread that made the newest write */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Replaces the function of libc. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	pthread_mutex_lock(&disk.lock);
	disk.begun++;
	disk.bytes = n;
	pthread_sigmask(SIG_SETMASK, NULL, &disk.mask);
	disk.waiting++;
	pthread_cond_broadcast(&disk.changed);
	while (disk.held)
		pthread_cond_wait(&disk.changed, &disk.lock);
	disk.waiting--;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
	return syscall(SYS_pwrite64, fd, p, n, at);
}

static void hold(bool held)
{
	pthread_mutex_lock(&disk.lock);
	disk.held = held;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
}

/* Wait until `n` writes block. */
static void await_waiting(int n)
{
	pthread_mutex_lock(&disk.lock);
	while (disk.waiting != n)
		pthread_cond_wait(&disk.changed, &disk.lock);
	pthread_mutex_unlock(&disk.lock);
}

static int begun(size_t *bytes)
{
	pthread_mutex_lock(&disk.lock);
	int n = disk.begun;
	if (bytes)
		*bytes = disk.bytes;
	pthread_mutex_unlock(&disk.lock);
	return n;
}

static struct made_up made_up;
static char dir[64], path[80], log_path[90];
static int log_fd;

static void setup(void)
{
	made_up_init(&made_up);
	made_up.view.n_stages = 2;
	snprintf(dir, sizeof(dir), "/tmp/weir-test-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/h", dir);
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	log_fd = open(log_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_TRUE_FATAL(log_fd >= 0);
	weir_log_set_fd(log_fd);
}

static void teardown(void)
{
	char other[96];

	weir_log_set_fd(-1);
	close(log_fd);
	unlink(path);
	unlink(log_path);
	snprintf(other, sizeof(other), "%s.new", path);
	unlink(other);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static bool logged(const char *what)
{
	char text[4096];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, what) != NULL;
}

static unsigned feed(struct history *h, int64_t second)
{
	made_up.view.wall_ns = (T0 + second) * 1000000000LL;
	made_up.view.now_ns = (1000000 + second) * 1000000000LL;
	made_up.stage[MADE_CACHE].class_view[1].offered += (uint64_t)second;
	return history_feed(h, &made_up.view);
}

static double in_of(const struct history *h, int64_t s)
{
	uint16_t code = COMPACT_NONE;
	int series = history_find(h, "cache");

	if (series >= 0)
		history_column(h, HISTORY_1S, series, SAMPLE_IN, T0 + s, 1, &code);
	return compact_unpack(code);
}

static void expect_saved(int64_t from, int64_t to)
{
	struct history *h = history_new();
	struct history_file *f = history_file_open(path, h);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (int64_t s = from; s <= to; s++)
		CU_ASSERT_EQUAL(in_of(h, s), s);
	history_file_close(f, h);
	history_free(h);
}

/* The whole file is a single write, and so are the samples of a second. */
static void test_few_writes(void)
{
	struct history *h = history_new();
	struct stat st;
	size_t bytes;

	setup();
	struct history_file *f = history_file_open(path, h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (int64_t s = 0; s <= 40; s++)
		feed(h, s);
	int before = begun(NULL);
	history_file_save(f, h, feed(h, 41));
	history_file_wait(f);
	CU_ASSERT_EQUAL(begun(&bytes), before + 1);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(bytes, (size_t)st.st_size);
	history_file_save(f, h, feed(h, 42));
	history_file_wait(f);
	CU_ASSERT_EQUAL(begun(&bytes), before + 2);
	CU_ASSERT_TRUE(bytes < 4096);
	/* the thread that writes takes no signal from the one that waits for signals */
	for (int sig = 1; sig < SIGSYS; sig++)
		CU_ASSERT_TRUE(sig == SIGKILL || sig == SIGSTOP || sigismember(&disk.mask, sig));
	history_file_close(f, h);
	history_free(h);
	expect_saved(1, 42);
	teardown();
}

/* While a write hangs, saves return at once, and more than a few pending ones raise an alert. Then
 * all missed samples are written, also across the end of the ring. */
static void test_lag(void)
{
	struct history *h = history_new();
	const int64_t from = HISTORY_SLOTS_1S - T0 % HISTORY_SLOTS_1S - 20;

	setup();
	struct history_file *f = history_file_open(path, h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	history_file_save(f, h, feed(h, from));
	history_file_wait(f);
	hold(true);
	history_file_save(f, h, feed(h, from + 1));
	await_waiting(1);
	CU_ASSERT_FALSE(history_file_failing(f));
	for (int64_t s = 2; s <= 40; s++)
		history_file_save(f, h, feed(h, from + s));
	CU_ASSERT_TRUE(history_file_failing(f));
	CU_ASSERT_TRUE(logged("a write has not ended"));
	hold(false);
	history_file_wait(f);
	history_file_save(f, h, feed(h, from + 41));
	history_file_wait(f);
	CU_ASSERT_FALSE(history_file_failing(f));
	history_file_close(f, h);
	CU_ASSERT_FALSE(logged("not saved"));
	history_free(h);
	expect_saved(from + 1, from + 41);
	teardown();
}

/* Samples that are not yet written are written at the end. */
static void test_last(void)
{
	struct history *h = history_new();

	setup();
	struct history_file *f = history_file_open(path, h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	hold(true);
	history_file_save(f, h, feed(h, 0));
	await_waiting(1);
	for (int64_t s = 1; s <= 5; s++)
		history_file_save(f, h, feed(h, s));
	hold(false);
	history_file_close(f, h);
	CU_ASSERT_FALSE(logged("not saved"));
	history_free(h);
	expect_saved(1, 5);
	teardown();
}

static int view_now(void *arg, struct weir_graph_view **view)
{
	struct made_up *m = arg;

	m->view.wall_ns += 1000000000LL; /* each view is of another second */
	m->view.now_ns += 1000000000LL;
	*view = &m->view;
	return 0;
}

/* A server whose disk hangs answers requests, stops, and logs that the history was not saved. */
static void test_server(void)
{
	char answer[4096];
	struct admin *admin;
	struct weir_err err = {0};

	setup();
	struct admin_source source = made_up_source(&made_up);
	source.view = view_now;
	source.history_file = path;
	hold(true);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	await_waiting(1);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(
		    client_get(admin_port(admin), "/healthz", answer, sizeof(answer)), 200);
	admin_stop(admin);
	CU_ASSERT_TRUE(logged("the newest part of the history was not saved"));
	/* The abandoned thread ends as soon as the disk responds. */
	hold(false);
	while (access(path, F_OK) != 0)
		sched_yield();
	teardown();
}

CUNIT_MAIN("history writer", {"one write for all", test_few_writes}, {"a slow disk", test_lag},
    {"the last samples", test_last}, {"a disk that hangs", test_server})
