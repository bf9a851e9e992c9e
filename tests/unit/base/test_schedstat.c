/* SPDX-License-Identifier: MIT */
/* CPU and run-queue time of another thread, with the kernel's file and without it. */
#include "base/schedstat.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "base/clock.h"
#include "cunit_main.h"

static struct schedstat stat_of;
static atomic_int phase; /* 0: burn, 1: stay quiet, 2: end */
static atomic_bool began;
static _Atomic uint64_t true_cpu_ns;

static void *thread_main(void *arg)
{
	(void)arg;
	schedstat_begin(&stat_of);
	atomic_store(&began, true);
	while (atomic_load(&phase) == 0)
		;
	atomic_store(&true_cpu_ns, (uint64_t)weir_clock_ns(CLOCK_THREAD_CPUTIME_ID));
	while (atomic_load(&phase) == 1)
		sched_yield();
	schedstat_end(&stat_of);
	return NULL;
}

static pthread_t begin(void)
{
	pthread_t t;

	atomic_store(&phase, 0);
	atomic_store(&began, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, thread_main, NULL), 0);
	while (!atomic_load(&began))
		sched_yield();
	return t;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Read until the burning thread has used 50 ms of CPU. The samples must agree with the thread's own
 * clock. */
static void follow(bool want_known)
{
	struct schedstat_sample s, before = {0};
	pthread_t t = begin();
	bool known = true;

	do {
		known = schedstat_read(&stat_of, &s);
		CU_ASSERT_TRUE(s.cpu_ns >= before.cpu_ns && s.runq_ns >= before.runq_ns);
		before = s;
	} while (s.cpu_ns < 50 * NS_PER_MS);
	CU_ASSERT_EQUAL(known, want_known);
	if (!want_known)
		CU_ASSERT_EQUAL(s.runq_ns, 0);
	atomic_store(&phase, 1);
	while (atomic_load(&true_cpu_ns) == 0)
		sched_yield();
	CU_ASSERT_TRUE(s.cpu_ns <= atomic_load(&true_cpu_ns) + NS_PER_MS);
	atomic_store(&phase, 2);
	pthread_join(t, NULL);
	schedstat_close(&stat_of, &s);
	CU_ASSERT_TRUE(s.cpu_ns >= atomic_load(&true_cpu_ns)); /* final value after its end */
	CU_ASSERT_TRUE(s.runq_ns >= before.runq_ns);
	atomic_store(&true_cpu_ns, 0);
}

static bool kernel_counts(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "r");
	unsigned long long cpu = 0;
	bool counts = f && fscanf(f, "%llu", &cpu) == 1 && cpu > 0;

	if (f)
		fclose(f);
	return counts;
}

static void test_with_the_file(void)
{
	int files = open_files();

	follow(kernel_counts());
	follow(kernel_counts()); /* the struct is reused for another thread */
	CU_ASSERT_EQUAL(open_files(), files);
}

static void test_without_the_file(void)
{
	schedstat_forget_files(true);
	follow(false);
	schedstat_forget_files(false);
}

static void test_before_the_thread(void)
{
	struct schedstat none = {0};
	struct schedstat_sample s = {1, 1};

	CU_ASSERT_TRUE(schedstat_read(&none, &s));
	CU_ASSERT_TRUE(s.cpu_ns == 0 && s.runq_ns == 0);
	schedstat_close(&none, &s);
	CU_ASSERT_EQUAL(s.cpu_ns, 0);
}

static uint64_t burn_to(uint64_t cpu_ns)
{
	struct schedstat_sample s;

	do
		schedstat_read(&stat_of, &s);
	while (s.cpu_ns < cpu_ns);
	return s.cpu_ns;
}

/* Another thread takes the place of one that has ended: the times of both are added, also if the file
 * of one of them is not there. */
static void test_successor(void)
{
	struct schedstat_sample s;

	for (int i = 0; i < 4; i++) {
		int files = open_files();
		schedstat_forget_files(i & 1);
		pthread_t t = begin();
		uint64_t first_ns = burn_to(20 * NS_PER_MS);
		atomic_store(&phase, 2);
		pthread_join(t, NULL);
		schedstat_forget_files(i & 2);
		t = begin();
		CU_ASSERT_TRUE(burn_to(first_ns + 20 * NS_PER_MS) > first_ns);
		atomic_store(&phase, 2);
		pthread_join(t, NULL);
		schedstat_close(&stat_of, &s);
		CU_ASSERT_TRUE(s.cpu_ns >= first_ns + atomic_load(&true_cpu_ns));
		CU_ASSERT_EQUAL(open_files(), files);
		atomic_store(&true_cpu_ns, 0);
	}
	schedstat_forget_files(false);
}

/* More threads than cores: one of them waits, and the run-queue time shows it. */
static void test_run_queue(void)
{
	cpu_set_t all, one;
	struct schedstat_sample s = {0};
	int cpu = 0;

	if (!kernel_counts())
		return;
	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one); /* the thread inherits it and competes with us */
	pthread_t t = begin();
	while (s.runq_ns < 10 * NS_PER_MS)
		schedstat_read(&stat_of, &s);
	CU_ASSERT_TRUE(s.cpu_ns > 0);
	atomic_store(&phase, 2);
	pthread_join(t, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	schedstat_close(&stat_of, &s);
}

CUNIT_MAIN("schedstat", {"with the file", test_with_the_file},
    {"without the file", test_without_the_file}, {"before the thread", test_before_the_thread},
    {"run queue", test_run_queue}, {"successor", test_successor})
