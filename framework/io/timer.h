/* SPDX-License-Identifier: MIT */
/*
 * The timer wheel of a loop: two levels, lazy, every operation O(1).
 *
 * Level 0 has 512 slots of one tick (4 ms), level 1 has 512 slots of 512 ticks (2.048 s), so 17
 * minutes fit; what is later waits in the last slot and is filed again. A timer sits in the slot of
 * the time it was filed for, which is never later than its `at_ns`: moving it later is one store,
 * and when the slot comes up the wheel files it again for what `at_ns` says then. (Varghese and
 * Lauck 1987, schemes 6 and 7; laziness as in the timers of libev.)
 *
 * One thread. Nothing here reads a clock.
 */
#ifndef WEIR_IO_TIMER_H
#define WEIR_IO_TIMER_H

#include <stdint.h>

#include <weir/io.h>

/** 4 ms, the grain of CLOCK_MONOTONIC_COARSE: time-outs need no finer one. */
#define TIMER_TICK_NS 4000000LL
#define TIMER_SLOTS   512

struct timer_wheel {
	int64_t tick;      /* the next tick that has not come up */
	int64_t floor;     /* the earliest tick that timers may be filed for */
	int64_t next_tick; /* no timer is filed before it; INT64_MAX when the wheel is empty */
	int64_t count;     /* timers in the wheel */
	uint64_t used[2][TIMER_SLOTS / 64]; /* slots that may hold timers */
	struct weir_timer *slot[2][TIMER_SLOTS];
};

/** An empty wheel at time `now_ns`. */
void timer_wheel_init(struct timer_wheel *w, int64_t now_ns);

/** Set `t`, or move it, to `at_ns`. */
void timer_wheel_set(struct timer_wheel *w, struct weir_timer *t, int64_t at_ns);

/** Take `t` out; legal when it is not in. */
void timer_wheel_cancel(struct timer_wheel *w, struct weir_timer *t);

/** Run `fire(loop, t)` of every timer due at `now_ns`; each is out of the wheel before it fires and
 *  may be set again in its callback. */
void timer_wheel_run(struct timer_wheel *w, int64_t now_ns, struct weir_loop *loop);

/** The earliest time at which timer_wheel_run has something to do, INT64_MAX for never. */
static inline int64_t timer_wheel_next_ns(const struct timer_wheel *w)
{
	return w->next_tick == INT64_MAX ? INT64_MAX : w->next_tick * TIMER_TICK_NS;
}

#endif
