/* SPDX-License-Identifier: MIT */
/*
 * Taking a batch from a sink's queue: how large, of which key, now or later.
 *
 * A batch is at most cohort.max events and at most this thread's share of what waits,
 * ceil(length / threads), so that one thread of many does not hoard a burst; and, unless cohorts
 * are asked for by a key, a linger time or a batch policy, as many as the thread can serve in a millisecond. In
 * cohort mode with a key it is the largest run of one key near the head; with a linger time a batch
 * that is not full waits until its oldest event has waited that long (Larus & Parkes, Cohort
 * Scheduling, 2002).
 */
#ifndef WEIR_FLOW_COHORT_H
#define WEIR_FLOW_COHORT_H

#include "flow/sink.h"

/** Take a batch for thread `rank` of `n_ranks` into ev[WEIR_BATCH_MAX]. Returns its size and the
 *  partition in *part; when 0, *ready_ns is when to come again (INT64_MAX: when woken). Handler
 *  threads; takes the queue's lock. */
int cohort_take(struct sink *s, int rank, int n_ranks, int64_t now_ns, struct weir_event **ev,
    int *part, int64_t *ready_ns);

/** Is a batch full enough that a sleeper should be woken for a queue of `length`, which was
 *  `before` events long? */
bool cohort_wakes(const struct sink *s, uint32_t before, uint32_t length);

#endif
