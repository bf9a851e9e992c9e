/* SPDX-License-Identifier: MIT */
/*
 * Finds cores that are blocked: they sleep in a handler, so their share of the queues waits.
 *
 * The types of stages that may block are refused in core groups, but any handler may block: a page
 * fault, a lock, a look-up of a name. The control thread looks at each core every few milliseconds. A
 * core is blocked if it sleeps in the same call at two looks that are BLOCKED_NS apart, and has neither
 * run nor waited for a CPU in between. A core that waits for a CPU, or works for long, is not blocked.
 *
 * Pure functions.
 */
#ifndef WEIR_SCHED_BLOCKED_H
#define WEIR_SCHED_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** Sleep from which on a core is blocked. 5 ms is a guess: a hundred times the longest batch of short
 *  handlers, and above a slow page fault from an SSD. */
#define BLOCKED_NS (5 * NS_PER_MS)

/** What a look at the thread of a core has shown. */
struct blocked_sight {
	int64_t since_ns; /* when the handler call began; 0: no call */
	bool asleep;
	uint64_t ran_ns; /* total time on CPUs, and waiting for them */
};

/** What is known of a core; zero at first. */
struct blocked {
	int64_t call_ns; /* since_ns and ran_ns of the last sight */
	uint64_t ran_ns;
	int64_t sleep_ns; /* first look at the present sleep, 0: the core is awake */
	int64_t slept_ns; /* length of the earlier sleeps in the same call */
	bool is;          /* it is blocked */
};

/** Take in what a look at `now_ns` has shown, and set b->is. Returns whether that has changed. */
bool blocked_look(struct blocked *b, const struct blocked_sight *sight, int64_t now_ns);

/** How long a blocked core has slept in its call; 0 if it is not blocked. */
static inline int64_t blocked_for_ns(const struct blocked *b, int64_t now_ns)
{
	return b->is ? now_ns - b->sleep_ns + b->slept_ns : 0;
}

/** When the next look is due, after one at `now_ns`: soon if the core sleeps in a call and is not blocked
 *  yet. INT64_MAX if it does not matter. */
int64_t blocked_next_ns(const struct blocked *b, int64_t now_ns);

#endif
