/* SPDX-License-Identifier: MIT */
/*
 * Splits the time of the threads of a pool by what they did in it, and by stage.
 *
 * The kernel counts, for each thread, the time on a core (cpu) and the time in which it was ready to
 * run but had no core (runq). Weir counts the time in handlers (busy), in the inline stages after
 * them (behind), and in polling for work (spun). Of a round with these increments, summed over the
 * threads,
 *
 *   blocked = busy + behind - (cpu - spun) - runq        at least 0
 *
 * is the time in which handlers neither ran nor could have run. It is a lower bound, since cpu also
 * has the work between handler calls, and runq also the time from a wake-up to the start of the
 * thread: short handlers may sleep for about 1 us each without being noticed.
 *
 * The reasons come from samples of sleep_reason(): one for each thread that is in a handler at the end
 * of a round. Older samples count for less and less, by SEEN_KEPT a round. The share of the samples
 * that were asleep also bounds the blocked time: the kernel adds to runq only when a thread gets a core,
 * so a thread that waits for one for long would seem to be blocked in the meantime. What is not
 * explained yet is carried over to the next rounds. So is what is explained twice, since the counters
 * are not read at the same moment.
 *
 * Pure; used by the control thread.
 */
#ifndef WEIR_GRAPH_TIME_SPLIT_H
#define WEIR_GRAPH_TIME_SPLIT_H

#include <stdbool.h>

#include <weir/view.h>

#include "base/sleep_reason.h"

/** Weight that a sample keeps from round to round. 0.9 is a guess: with ten rounds a second, a sample
 *  counts for about a second. */
#define SEEN_KEPT 0.9

/** Most time that may be carried over: explained twice (a guess: two ticks of the kernel's clock, by
 *  which its counters may lag), and not explained yet (a guess; what exceeds it is shown as blocked for
 *  an unknown reason). */
#define OWED_NS  20e6
#define CARRY_NS 5e9

/** One stage of the pool. */
struct time_stage {
	double busy_ns;             /* increment of the time in its handler */
	double behind_ns;           /* the same, of inline stages after it, in its threads */
	double seen[SLEEP_REASONS]; /* samples of threads that slept in its handler */
	double own_ns;              /* of busy_ns, what it slept */
	double out[WEIR_TIMES];     /* the result, in ns */
};

/** The pool; increments of one round. */
struct time_round {
	double wall_ns; /* number of threads, multiplied by the time that has passed */
	double cpu_ns, runq_ns, spun_ns;
	double seen_behind; /* samples of threads that slept in inline stages */
	double in_calls;    /* samples of threads in handlers, asleep or not */
};

/** Let the samples of earlier rounds count for less. */
void time_split_age(struct time_stage *stage, int n);

/**
 * Split `round` over stage[0..n), n >= 1, into their `out`. The sum of all values is wall_ns, apart
 * from what is carried over. Time in which no handler ran (WEIR_TIME_IDLE) belongs to no stage; it is
 * divided equally. *carry_ns belongs to the pool, and is 0 at first.
 */
void time_split(const struct time_round *round, struct time_stage *stage, int n, double *carry_ns);

/** Of an inline stage, which has no threads: split its busy_ns and the samples, each of which stands
 *  for sample_ns. pending_ns[SLEEP_REASONS] belongs to the stage, and is 0 at first. What slept in a
 *  call that has not been counted as busy yet remains there. */
void time_split_inline(struct time_stage *stage, double sample_ns, double *pending_ns);

#endif
