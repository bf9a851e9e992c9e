/* SPDX-License-Identifier: MIT */
/*
 * Captures the call stack of another thread of this process, for the watchdog.
 *
 * The thread is sent STACK_SIGNAL, whose handler writes the return addresses on the thread's stack
 * to a buffer. The requesting thread waits for the buffer and prints it later. The handler is
 * async-signal-safe: backtrace() is safe once its library is loaded, which stack_prepare ensures. A
 * thread that blocks the signal or is stuck in the kernel yields no stack.
 *
 * The signal interrupts nanosleep, poll and similar calls, which then fail with EINTR in the
 * signalled thread. Stage handlers must be prepared for EINTR anyway, since any signal may cause
 * it.
 *
 * | call                       | threads                                                   |
 * |----------------------------|-----------------------------------------------------------|
 * | stack_prepare              | any thread, before the others; may be repeated            |
 * | stack_ask, stack_await     | any thread; one capture at a time in the process          |
 */
#ifndef WEIR_BASE_STACK_H
#define WEIR_BASE_STACK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/symbol.h"

/** A real-time signal that is not used by glibc (which uses the first two) or valgrind. Threads
 *  created by task_start do not block it. */
#define STACK_SIGNAL (SIGRTMIN + 6)

#define STACK_FRAMES 32

struct stack {
	void *frame[STACK_FRAMES];
	int n;
};

/** Install the signal handler. Returns false if the signal already has another handler, in which
 *  case stacks are not available. */
bool stack_prepare(void);

/** Request the stack of a thread of this process. The thread `tid` must still exist. Returns false
 *  if another capture is in progress or the signal cannot be sent. If the result is true, the
 *  caller must call stack_await. */
bool stack_ask(int tid);

/** Wait for the requested stack, at most `timeout_ns`. Returns false if it did not arrive. */
bool stack_await(struct stack *stack, int64_t timeout_ns);

/** Describe frame `i` in one line such as "read_file (weir+0x4a1f)", or "?? (libc.so.6+0x891f5)" if the
 *  function is not known, truncated to `size`. The offset is that in the file, as `addr2line -e` takes
 *  it. `file` is zero at first, and to be closed after the last line (base/symbol.h). Maps files; about
 *  0.1 ms. */
void stack_line(const struct stack *stack, int i, struct symbol_file *file, char *buf, int size);

#endif
