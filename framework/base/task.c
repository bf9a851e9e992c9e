/* SPDX-License-Identifier: MIT */
/* Thread creation; see task.h. The thread blocks every signal that is sent, since main handles
 * them, but for the watchdog's question for its stack. */
#include "base/task.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/clock.h"
#include "base/stack.h"

/* For the handler of a crash, where the stack itself may be what ran out. Linux wants up to 11 KiB
 * for the frame of a machine with AMX; the rest is the handler's. */
#define TASK_CRASH_STACK_BYTES (32 * 1024)

static atomic_int live_tasks;

/* Signals that a thread brings upon itself stay open: blocked, the kernel would end the process
 * without the words of the crash handler. */
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

/* Nobody is ever cancelled here. glibc (2.36) still marks a thread of the kind that may be around each call that could wait,
 * recv and send among them, by two atomic exchanges; it does not where any moment would do. */
static void task_rule_out_cancel(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

/* The crash stack lies at the far end of the thread's own: whatever overflows does so at the other.
 * A sanitizer that has set one of its own keeps it. */
static void *task_main(void *arg)
{
	struct task *task = arg;
	char memory[TASK_CRASH_STACK_BYTES];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)}, old;
	const stack_t none = {.ss_flags = SS_DISABLE};

	/* Not by its maker, who might come too late: after somebody has joined it. */
	pthread_setname_np(pthread_self(), task->name);
	task_rule_out_cancel();
	bool ours = sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE) &&
		    sigaltstack(&stack, NULL) == 0;
	void *result = task->run(task->arg);
	if (ours)
		sigaltstack(&none, NULL);
	return result;
}

int task_start(struct task *task, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t old;

	task->run = run;
	task->arg = arg;
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

#define BUDGET_PER_CORE 32
#define BUDGET_MAX      512

int task_budget(void)
{
	int budget = BUDGET_PER_CORE * task_cores();

	return budget < BUDGET_MAX ? budget : BUDGET_MAX;
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
