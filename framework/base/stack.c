/* SPDX-License-Identifier: MIT */
/*
 * Captures the stacks of other threads; see stack.h. There is one buffer, whose state determines
 * its owner:
 *
 *   FREE --stack_ask--> ASKED --the handler--> WRITING --the handler--> DONE --stack_await--> FREE
 *   ASKED --stack_await times out--> FREE     (a handler that starts now does nothing)
 *   WRITING --stack_await times out--> LATE --the handler--> FREE
 */
#include "base/stack.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

enum { FREE, ASKED, WRITING, DONE, LATE };

static atomic_bool prepared;
static atomic_uint state; /* futex word */
static atomic_int asked_tid;
static struct stack captured; /* owned by the handler in WRITING and LATE, else by stack_await */

static void on_signal(int number)
{
	unsigned want = ASKED;
	int saved = errno;

	(void)number;
	if ((int)syscall(SYS_gettid) == atomic_load(&asked_tid) &&
	    atomic_compare_exchange_strong(&state, &want, WRITING)) {
		captured.n = backtrace(captured.frame, STACK_FRAMES);
		want = WRITING;
		/* fails if stack_await has timed out and set LATE */
		if (!atomic_compare_exchange_strong(&state, &want, DONE))
			atomic_store(&state, FREE);
		futex_wake(&state);
	}
	errno = saved;
}

bool stack_prepare(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK},
			 old;
	void *frame[1];

	if (sigaction(STACK_SIGNAL, NULL, &old) != 0)
		return false;
	if (!(old.sa_flags & SA_SIGINFO) && old.sa_handler == on_signal)
		return true;
	if ((old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL)
		return false;
	backtrace(frame, 1); /* loads libgcc, which the signal handler must not do (it allocates) */
	sigemptyset(&action.sa_mask);
	atomic_store(&prepared, sigaction(STACK_SIGNAL, &action, NULL) == 0);
	return atomic_load(&prepared);
}

bool stack_ask(int tid)
{
	unsigned want = FREE;

	if (!atomic_load(&prepared))
		return false;
	if (!atomic_compare_exchange_strong(&state, &want, ASKED))
		return false;
	atomic_store(&asked_tid, tid);
	if (syscall(SYS_tgkill, getpid(), tid, STACK_SIGNAL) == 0)
		return true;
	atomic_store(&state, FREE);
	return false;
}

bool stack_await(struct stack *stack, int64_t timeout_ns)
{
	int64_t end_ns = clock_now_ns() + timeout_ns;
	unsigned now;

	while ((now = atomic_load(&state)) != DONE) {
		int64_t left_ns = end_ns - clock_now_ns();
		unsigned want = ASKED;
		if (left_ns > 0) {
			futex_wait(&state, now, left_ns);
			continue;
		}
		/* Timed out. A handler that is writing frees the buffer itself (LATE). */
		atomic_store(&asked_tid, 0);
		if (atomic_compare_exchange_strong(&state, &want, FREE))
			return false;
		want = WRITING;
		if (atomic_compare_exchange_strong(&state, &want, LATE))
			return false;
	}
	*stack = captured;
	atomic_store(&state, FREE);
	return true;
}

void stack_line(const struct stack *stack, int i, struct symbol_file *file, char *buf, int size)
{
	struct symbol s;

	symbol_find(file, (uintptr_t)stack->frame[i], &s);
	snprintf(buf, (size_t)size, "%s (%s+0x%" PRIxPTR ")", s.function, s.file, s.offset);
}
