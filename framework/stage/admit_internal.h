/* SPDX-License-Identifier: MIT */
/* A query to an admission policy; shared by admit.c and admit_upstream.c. */
#ifndef WEIR_STAGE_ADMIT_INTERNAL_H
#define WEIR_STAGE_ADMIT_INTERNAL_H

#include "stage/admit.h"

/** A query to a policy about the events of one class in a batch. */
struct admit_call {
	struct weir_event **ev; /* the batch */
	int n;
	struct verdict *v;
	int class_id;
	/* consider only events for thread `rank` of `n_ranks`, or all events if it is ANY_RANK */
	int rank, n_ranks;
	/* `admitted_ns` is the admitted work that the counters do not include yet */
	int64_t now_ns, lead_ns, admitted_ns;
	/* share of the events on their way to this stage that arrive before those of the query,
	 * 0..AHEAD_ALL */
	int before;
	double fan; /* events that enter this stage for each event of the query, at least 1 */
	uint32_t length;
	int would; /* result: number of events that the policy refuses, in any mode */
};

/** The number of events at the front that `n` events bring, if each brings `fan`. */
static inline uint64_t fanned(double fan, int n)
{
	return WEIR_LIKELY(fan == 1) ? (uint64_t)n : (uint64_t)((double)n * fan + 0.5);
}

/** Consult the policy of `s` and, in enforce mode, apply its result to the verdict. Returns the
 * number of events that the policy admits. */
int admit_ask(struct sink *s, struct admit_call *a) WEIR_REQUIRES(&s->queue.lock);

#endif
