/* SPDX-License-Identifier: MIT */
/*
 * Outcomes of decisions: each time a pool grows or shrinks, the effect is evaluated 5 s and 30 s
 * later.
 *
 * Two figures of the pool, smoothed over about a second, are compared with their values at the
 * decision: throughput (events handled per second) and wait (queue length / throughput).
 *
 *   undone      the pool is back at its old size, or beyond
 *   helped      throughput rose by 5 %, or the wait fell by a fifth
 *   harmed      after a shrink, the wait doubled and is over 10 ms
 *   no effect   none of these
 *
 * The load may have changed meanwhile, so an outcome describes what was observed, not what caused
 * it. Used by the control thread only.
 */
#ifndef WEIR_CONTROL_OUTCOME_H
#define WEIR_CONTROL_OUTCOME_H

#include "control/journal.h"
#include "control/resize.h"

/** Maximum number of decisions of one pool that wait for their outcome. At 4 a second for 30 s
 *  there could be 120; if there are more than 32, the oldest get no outcome. */
#define OUTCOMES_MAX 32

struct outcome_pending {
	uint64_t id; /* id of the decision; 0 if the entry is free */
	int64_t at_ns;
	int from, to;
	double done_per_s, wait_s;
	bool early_said; /* the 5 s outcome has been written */
};

struct outcomes {
	bool started;
	int64_t at_ns;
	uint64_t items;
	double done_per_s, wait_s; /* current, smoothed */
	int next;
	struct outcome_pending pending[OUTCOMES_MAX];
};

/** Measure the pool, and write the outcomes that are due to the journal. Called on every tick. */
void outcomes_step(
    struct outcomes *o, const struct resize_view *v, int64_t now_ns, struct journal *journal);

/** Schedule the evaluation of decision `id`, which resized the pool from `from` to `to` threads.
 *  Called after outcomes_step of the same tick. */
void outcomes_expect(struct outcomes *o, uint64_t id, int from, int to, int64_t now_ns);

#endif
