/* SPDX-License-Identifier: MIT */
/* Sleep on a word, wake a sleeper: futex(2), private to the process. */
#ifndef WEIR_BASE_FUTEX_H
#define WEIR_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** Sleep while *word == value, at most `timeout_ns` (negative: for ever). May return early. */
static inline void futex_wait(atomic_uint *word, unsigned value, int64_t timeout_ns)
{
	struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns < 0 ? NULL : &ts, NULL, 0);
}

/** Wake at most one sleeper on `word`. About 1.5 to 6.6 us when there is one (limits.md). */
static inline void futex_wake(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
