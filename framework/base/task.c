/* SPDX-License-Identifier: MIT */
/* Thread creation; see task.h. The thread blocks every signal: main handles them. */
#include "base/task.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/clock.h"

static atomic_int live_tasks;

int task_start(struct task *task, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t all, old;

	task->run = run;
	task->arg = arg;
	snprintf(task->name, sizeof(task->name), "%s", name);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&task->thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return WEIR_ESYS;
	pthread_setname_np(task->thread, task->name);
	atomic_fetch_add(&live_tasks, 1);
	return 0;
}

void task_join(struct task *task)
{
	int rc = pthread_join(task->thread, NULL);

	WEIR_ASSERT(rc == 0);
	atomic_fetch_sub(&live_tasks, 1);
}

int task_count(void)
{
	return atomic_load(&live_tasks);
}

int task_cores(void)
{
	static atomic_int cores;
	int n = atomic_load_explicit(&cores, memory_order_relaxed);

	if (n == 0) {
		cpu_set_t set;
		n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
		n = n < 1 ? 1 : n;
		atomic_store_explicit(&cores, n, memory_order_relaxed);
	}
	return n;
}

#define RELAX_NS     200
#define RELAX_SAMPLE 1000 /* pauses to time one by */

static int measure_pauses(void)
{
	int64_t start_ns = clock_now_ns();

	for (int i = 0; i < RELAX_SAMPLE; i++)
		__builtin_ia32_pause();
	int64_t took_ns = clock_now_ns() - start_ns;
	int n = took_ns > 0 ? (int)(RELAX_NS * RELAX_SAMPLE / took_ns) : 1;
	return n < 1 ? 1 : n;
}

void task_relax(void)
{
	static atomic_int pauses;
	int n = atomic_load_explicit(&pauses, memory_order_relaxed);

	if (n == 0) {
		n = measure_pauses();
		atomic_store_explicit(&pauses, n, memory_order_relaxed);
	}
	while (n-- > 0)
		__builtin_ia32_pause();
}
