/* SPDX-License-Identifier: MIT */
/*
 * Finds out why a thread of this process sleeps.
 *
 * The source is /proc/self/task/TID/syscall, which shows the system call in which a thread sleeps,
 * "-1" if it sleeps outside system calls, and "running" if it does not sleep. Kernels without this
 * file, and containers that hide it, still have the state in /proc/self/task/TID/stat; a sleeping
 * thread is then reported as SLEEP_OTHER, or as SLEEP_IO if it cannot be interrupted.
 */
#ifndef WEIR_BASE_SLEEP_REASON_H
#define WEIR_BASE_SLEEP_REASON_H

enum sleep_reason {
	SLEEP_IO,     /* in a system call on files, sockets, pipes or timers that waits for data */
	SLEEP_LOCK,   /* for a futex (mutexes, conditions, semaphores), or a lock of a file */
	SLEEP_MEMORY, /* in a page fault, or in a system call that changes the address space */
	SLEEP_TIMED,  /* in nanosleep */
	SLEEP_OTHER,  /* in another system call, or for an unknown reason */
	SLEEP_REASONS,
	SLEEP_AWAKE = -1 /* on a core or ready to run, or the thread has ended */
};

/** Why the thread with kernel id `tid` sleeps now. Costs about 5 us. Any thread. */
enum sleep_reason sleep_reason(int tid);

/** The reason for `text`, the contents of a syscall file. For tests. */
enum sleep_reason sleep_reason_of(const char *text);

#endif
