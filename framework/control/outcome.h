/* SPDX-License-Identifier: MIT */
/*
 * What became of decisions: each grow or shrink of a pool is looked at again 5 s and 30 s later.
 *
 * Two figures of the pool, smoothed over about a second, are compared with what they were at the
 * decision: throughput (events handled per second) and wait (queue length / throughput).
 *
 *   undone      the pool is back where it was, or beyond
 *   helped      throughput 5 % up, or wait a fifth down
 *   harmed      of a shrink: the wait doubled and is over 10 ms
 *   no effect   none of these
 *
 * The load may have changed meanwhile: the word says what was seen, not why. The control thread's.
 */
#ifndef WEIR_CONTROL_OUTCOME_H
#define WEIR_CONTROL_OUTCOME_H

#include "control/journal.h"
#include "control/resize.h"

/** Decisions of one pool that wait for their outcome. At 4 a second for 30 s there could be 120;
 *  then the oldest go without. */
#define OUTCOMES_MAX 32

struct outcome_pending {
	uint64_t id; /* 0: free */
	int64_t at_ns;
	int from, to;
	double done_per_s, wait_s;
	bool early_said; /* the 5 s one */
};

struct outcomes {
	bool started;
	int64_t at_ns;
	uint64_t items;
	double done_per_s, wait_s; /* now, smoothed */
	int next;
	struct outcome_pending pending[OUTCOMES_MAX];
};

/** Look at the pool, each tick; write the outcomes that are due into the journal. */
void outcomes_step(
    struct outcomes *o, const struct resize_view *v, int64_t now_ns, struct journal *journal);

/** Decision `id` moved the pool from `from` to `to` threads. After outcomes_step of the tick. */
void outcomes_expect(struct outcomes *o, uint64_t id, int from, int to, int64_t now_ns);

#endif
