/* SPDX-License-Identifier: MIT */
/* Why a thread sleeps: the contents of the kernel's file, and real threads. */
#include "base/sleep_reason.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cunit_main.h"

static void test_text(void)
{
	char text[80];
	const struct {
		long number;
		const char *args;
		enum sleep_reason want;
	} row[] = {
	    {SYS_read, "0x3 0x7ffd 0x10", SLEEP_IO},
	    {SYS_futex, "0x7f 0x80 0x0", SLEEP_LOCK},
	    {SYS_clock_nanosleep, "0x0 0x0", SLEEP_TIMED},
	    {SYS_munmap, "0x7f 0x1000", SLEEP_MEMORY},
	    {SYS_wait4, "0x1", SLEEP_OTHER},
	    {SYS_fcntl, "0x3 0x7 0x7ffd", SLEEP_LOCK},
	    {SYS_fcntl, "0x3 0x1 0x0", SLEEP_IO},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(text, sizeof(text), "%ld %s", row[i].number, row[i].args);
		CU_ASSERT_EQUAL(sleep_reason_of(text), row[i].want);
	}
	CU_ASSERT_EQUAL(sleep_reason_of("running\n"), SLEEP_AWAKE);
	CU_ASSERT_EQUAL(sleep_reason_of("-1 0x7ffd 0x7f13\n"), SLEEP_MEMORY);
	CU_ASSERT_EQUAL(sleep_reason_of(""), SLEEP_OTHER);
	CU_ASSERT_EQUAL(sleep_reason_of("what"), SLEEP_OTHER);
}

static atomic_int tid;
static int ends[2];
static sem_t sem;
static atomic_bool leave;

static void *reads(void *arg)
{
	char c;

	atomic_store(&tid, (int)gettid());
	(void)!read(ends[0], &c, 1);
	return arg;
}

static void *waits(void *arg)
{
	atomic_store(&tid, (int)gettid());
	sem_wait(&sem);
	return arg;
}

static void *spins(void *arg)
{
	atomic_store(&tid, (int)gettid());
	while (!atomic_load(&leave))
		;
	return arg;
}

/* Whether this kernel shows the system calls of threads; without, a sleep has no reason. */
static bool shown(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)gettid());
	return access(path, R_OK) == 0;
}

static pthread_t start(void *(*main)(void *))
{
	pthread_t t;

	atomic_store(&tid, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, main, NULL), 0);
	while (atomic_load(&tid) == 0)
		sched_yield();
	return t;
}

static void await_reason(enum sleep_reason want)
{
	want = shown() ? want : SLEEP_OTHER;
	while (sleep_reason(atomic_load(&tid)) != want)
		sched_yield();
}

static void test_threads(void)
{
	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	pthread_t t = start(reads);
	await_reason(SLEEP_IO);
	CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
	pthread_join(t, NULL);
	close(ends[0]);
	close(ends[1]);

	sem_init(&sem, 0, 0);
	t = start(waits);
	await_reason(SLEEP_LOCK);
	sem_post(&sem);
	pthread_join(t, NULL);
	sem_destroy(&sem);

	atomic_store(&leave, false);
	t = start(spins);
	while (sleep_reason(atomic_load(&tid)) != SLEEP_AWAKE)
		sched_yield();
	atomic_store(&leave, true);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(sleep_reason(0x7ffffff0), SLEEP_AWAKE);
}

CUNIT_MAIN("sleep reason", {"the kernel's text", test_text}, {"threads", test_threads})
