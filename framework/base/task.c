/* SPDX-License-Identifier: MIT */
/* Creates threads; see task.h. Threads block the signals that are sent to the process, since main
 * handles them. They do not block STACK_SIGNAL, with which the watchdog requests a stack. */
#include "base/task.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/stack.h"

/* Size of the alternate stack on which the crash handler runs, since the thread's stack may have
 * overflowed. Linux needs up to 11 KiB for the signal frame on a machine with AMX. The remaining
 * space is for the handler, whose stack walk takes about 8 KiB. */
#define TASK_CRASH_STACK_BYTES (32 * 1024)

static atomic_int live_tasks;

/* Block all signals but STACK_SIGNAL and those that a thread raises by a fault or abort(). If a
 * fault signal were blocked, the kernel would kill the process without a crash report. */
static void task_block_signals(sigset_t *old)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&set, own[i]);
	sigdelset(&set, STACK_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &set, old);
}

/* Disable thread cancellation, which weir never uses, and set its type to asynchronous. Otherwise
 * glibc (2.36) executes two atomic exchanges around each call that could block, such as recv and
 * send. */
static void task_rule_out_cancel(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

/* Wake the thread that waits in task_join_until, if any. `task` is still valid here, since its
 * owner frees it only after pthread_join. */
static void task_ended(void *arg)
{
	struct task *task = arg;

	atomic_store(&task->ended, 1);
	futex_wake(&task->ended);
}

/* Body of every thread. The crash stack is a local array at the base of the thread's stack, far
 * from the end that overflows. If a sanitizer has installed an alternate stack, that one is left in
 * place. */
static void *task_main(void *arg)
{
	struct task *task = arg;
	char memory[TASK_CRASH_STACK_BYTES];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)}, old;
	const stack_t none = {.ss_flags = SS_DISABLE};

	/* The creating thread cannot set the name: this thread may have been joined by then. */
	pthread_setname_np(pthread_self(), task->name);
	task_rule_out_cancel();
	bool ours = sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE) &&
		    sigaltstack(&stack, NULL) == 0;
	void *result;
	pthread_cleanup_push(task_ended, task);
	result = task->run(task->arg);
	pthread_cleanup_pop(1);
	if (ours)
		sigaltstack(&none, NULL);
	return result;
}

int task_start(struct task *task, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t old;

	task->run = run;
	task->arg = arg;
	atomic_store(&task->ended, 0);
	snprintf(task->name, sizeof(task->name), "%s", name);
	atomic_fetch_add(&live_tasks, 1);
	task_block_signals(&old);
	int rc = pthread_create(&task->thread, NULL, task_main, task);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		return 0;
	atomic_fetch_sub(&live_tasks, 1);
	return WEIR_ESYS;
}

void task_join(struct task *task)
{
	int rc = pthread_join(task->thread, NULL);

	WEIR_ASSERT(rc == 0);
	atomic_fetch_sub(&live_tasks, 1);
}

bool task_join_until(struct task *task, int64_t at_ns)
{
	int64_t left_ns;

	while (atomic_load(&task->ended) == 0) {
		left_ns = at_ns - clock_now_ns();
		if (left_ns <= 0)
			return false;
		futex_wait(&task->ended, 0, left_ns);
	}
	task_join(task);
	return true;
}

int task_count(void)
{
	return atomic_load(&live_tasks);
}

static atomic_int cores;
static bool pretended;

void task_pretend_cores(int n)
{
	pretended = true;
	atomic_store_explicit(&cores, n, memory_order_relaxed);
}

int task_cores(void)
{
	int n = atomic_load_explicit(&cores, memory_order_relaxed);

	if (n == 0) {
		cpu_set_t set;
		n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
		n = n < 1 ? 1 : n;
		atomic_store_explicit(&cores, n, memory_order_relaxed);
	}
	return n;
}

bool task_may_run_on(int cpu)
{
	cpu_set_t allowed;

	if (pretended)
		return cpu >= 0 && cpu < task_cores();
	return cpu >= 0 && cpu < CPU_SETSIZE &&
	       sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_ISSET(cpu, &allowed);
}

#define BUDGET_PER_CORE 32
#define BUDGET_MAX      512

int task_budget(void)
{
	int budget = BUDGET_PER_CORE * task_cores();

	return budget < BUDGET_MAX ? budget : BUDGET_MAX;
}

#define RELAX_NS     200
#define RELAX_SAMPLE 1000 /* pause instructions per measurement */

static int measure_pauses(void)
{
	int64_t start_ns = clock_now_ns();

	for (int i = 0; i < RELAX_SAMPLE; i++)
		task_pause();
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
		task_pause();
}
