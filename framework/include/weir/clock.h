/* SPDX-License-Identifier: MIT */
/* Time as int64 nanoseconds. Reading the clock costs about 21 ns, so read it once per batch of
 * events, not once per event. */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include <stdint.h>
#include <time.h>

#include <weir/annotate.h>

WEIR_C_BEGIN

/** Read clock `id` (CLOCK_MONOTONIC, CLOCK_REALTIME, a CPU clock) in ns. Any thread. Handlers
 *  should use weir_now_ns, which does not read a clock. */
static inline int64_t weir_clock_ns(clockid_t id)
{
	struct timespec ts = {0, 0};

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

WEIR_C_END

#endif
