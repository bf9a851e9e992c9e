/* SPDX-License-Identifier: MIT */
/*
 * The call stack of another thread of this process, for the watchdog.
 *
 * The thread is sent the signal STACK_SIGNAL, whose handler walks its own stack into a buffer; the
 * asker waits for it and prints at leisure. All that runs in the handler is async-signal-safe:
 * backtrace() is once its library is loaded, which stack_prepare sees to. A thread that does not
 * take signals (it has blocked this one, or the kernel has it) gives no stack.
 *
 * The signal ends a sleep early: nanosleep, poll and the like return EINTR in the thread asked,
 * which a handler has to expect of any signal.
 *
 * | call                       | who                                                       |
 * |----------------------------|-----------------------------------------------------------|
 * | stack_prepare              | any thread, before the others; again is legal             |
 * | stack_ask, stack_await     | any thread; one capture at a time in the process          |
 */
#ifndef WEIR_BASE_STACK_H
#define WEIR_BASE_STACK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/** Of the real-time signals one that neither glibc (the first two) nor valgrind uses. Threads made by
 *  task_start have it open. */
#define STACK_SIGNAL (SIGRTMIN + 6)

#define STACK_FRAMES 32

struct stack {
	void *frame[STACK_FRAMES];
	int n;
};

/** Install the handler. False when somebody else has one for this signal: there will be no stacks. */
bool stack_prepare(void);

/** Ask thread `tid` of this process for its stack; it must be alive. False when another capture is
 *  under way, or it can not be asked; else stack_await must follow. */
bool stack_ask(int tid);

/** Wait for the stack asked for, at most `timeout_ns`. False when it did not come. */
bool stack_await(struct stack *stack, int64_t timeout_ns);

/** One line for frame `i`, "weir(+0x4a1f)", cut to `size`. Allocates. */
void stack_line(const struct stack *stack, int i, char *buf, int size);

#endif
