/* SPDX-License-Identifier: MIT */
/*
 * Thread creation for all of weir. Every thread has a name, is counted, blocks signals, and must be
 * joined.
 *
 * | call            | threads                                    |
 * |-----------------|--------------------------------------------|
 * | task_start      | any thread                                 |
 * | task_join       | once per started task, not the task itself |
 * | task_join_until | as task_join, until it returns true        |
 */
#ifndef WEIR_BASE_TASK_H
#define WEIR_BASE_TASK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>

struct task {
	pthread_t thread;
	void *(*run)(void *arg);
	void *arg;
	atomic_uint ended; /* futex word: 1 when `run` has returned or called pthread_exit */
	char name[16];     /* as shown by the kernel, truncated to 15 bytes */
};

/** Start `run(arg)` in a new thread called `name`. `task` must stay valid until task_join returns.
 *  Returns 0, or WEIR_ESYS if the thread cannot be created. */
int task_start(struct task *task, const char *name, void *(*run)(void *arg), void *arg);

/** Wait for the thread to end. */
void task_join(struct task *task);

/** Wait for the thread to end, at most until `at_ns` (CLOCK_MONOTONIC); if at_ns is 0, only check.
 *  Returns true if the thread has ended and was joined, false if it still runs and must be joined
 *  later. */
bool task_join_until(struct task *task, int64_t at_ns);

/** Return the number of threads that were started and not joined yet. */
int task_count(void);

/** Return the number of cores that this process may run on, at least 1. Determined once. */
int task_cores(void);

/** From now on, task_cores returns `cores`, at least 1, and task_may_run_on is true of the CPUs from 0 to
 *  cores - 1: for plans of another machine (`weir simulate --cores`). Before threads are started. */
void task_pretend_cores(int cores);

/** Whether this process may run on CPU `cpu`. */
bool task_may_run_on(int cpu);

/** Return the maximum number of handler threads over all pools: 32 per core, but at most 512. */
int task_budget(void);

/** Tell the core that the thread is spinning (PAUSE on x86, YIELD on ARM; nothing elsewhere). */
static inline void task_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/** Wait about 200 ns without giving up the core, between two checks of a spin loop. A PAUSE
 *  instruction takes 12 ns on some cores and 60 ns on others, so the number of PAUSE instructions
 *  for 200 ns is measured at the first call. */
void task_relax(void);

#endif
