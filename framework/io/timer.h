/* SPDX-License-Identifier: MIT */
/*
 * A lazy timer wheel with two levels, for event loops, tickets and the load generator. Every
 * operation is O(1).
 *
 * Level 0 has 512 slots of one tick, level 1 has 512 slots of 512 ticks. With ticks of 4 ms the
 * wheel covers 17 minutes. Timers that are due later wait in the last slot and are then filed
 * again. A timer is filed in a slot that is processed at or before its `at_ns` (rounded up to a
 * tick), and stays there until then. Moving a timer to a later time only stores the new `at_ns`;
 * when the old slot is processed, the wheel files the timer again. (Varghese and Lauck 1987,
 * schemes 6 and 7; libev's timers are lazy in the same way.)
 *
 * Used by one thread. Never reads a clock.
 */
#ifndef WEIR_IO_TIMER_H
#define WEIR_IO_TIMER_H

#include <stdint.h>

#include <weir/io.h>

#define TIMER_SLOTS 512

struct timer_wheel {
	int64_t tick_ns;                    /* length of a tick */
	int64_t tick;                       /* the next tick to process */
	int64_t floor;                      /* the earliest tick under which timers may be filed */
	int64_t next_tick;                  /* no earlier slot holds timers; INT64_MAX if empty */
	int64_t count;                      /* timers in the wheel */
	uint64_t used[2][TIMER_SLOTS / 64]; /* by level, a bit for each slot that may hold timers */
	struct weir_timer *slot[2][TIMER_SLOTS];
};

/** Initialize an empty wheel at time `now_ns`. A timer fires in the first call of timer_wheel_run
 *  at or after its time, rounded up to a tick. */
void timer_wheel_init(struct timer_wheel *w, int64_t tick_ns, int64_t now_ns);

/** Set `t` to fire at `at_ns`, or move it there. */
void timer_wheel_set(struct timer_wheel *w, struct weir_timer *t, int64_t at_ns);

/** Remove `t` from the wheel. Does nothing if it is not in the wheel. */
void timer_wheel_cancel(struct timer_wheel *w, struct weir_timer *t);

/** Call `fire(loop, t)` for every timer that is due at `now_ns`. A timer is removed from the wheel
 *  before it fires, so its callback may set it again. */
void timer_wheel_run(struct timer_wheel *w, int64_t now_ns, struct weir_loop *loop);

/** Return the earliest time at which timer_wheel_run has work, or INT64_MAX if the wheel is
 *  empty. */
static inline int64_t timer_wheel_next_ns(const struct timer_wheel *w)
{
	return w->next_tick == INT64_MAX ? INT64_MAX : w->next_tick * w->tick_ns;
}

#endif
