/* SPDX-License-Identifier: MIT */
/* Time as int64 nanoseconds. One read costs about 21 ns: stamp runs, not events. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

static inline int64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/** CLOCK_MONOTONIC in ns. */
static inline int64_t clock_now_ns(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/** CLOCK_REALTIME in ns. */
static inline int64_t clock_wall_ns(void)
{
	return clock_of(CLOCK_REALTIME);
}

#endif
