/* SPDX-License-Identifier: MIT */
/* Clock readings as int64 nanoseconds. Reading a clock costs about 21 ns, so read it once per batch
 * of events, not once per event. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <weir/clock.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/** Return CLOCK_MONOTONIC in ns. */
static inline int64_t clock_now_ns(void)
{
	return weir_clock_ns(CLOCK_MONOTONIC);
}

/** Return CLOCK_REALTIME in ns. */
static inline int64_t clock_wall_ns(void)
{
	return weir_clock_ns(CLOCK_REALTIME);
}

#endif
