/* SPDX-License-Identifier: MIT */
/*
 * Takes batches from a sink's queue, and decides on their size, key and time.
 *
 * A batch has at most cohort.max events, and at most this thread's share of the queue, ceil(length
 * / threads), so that one thread does not take a whole burst, unless cohorts by key or a linger time
 * are configured. It also has at most as many events as the thread can serve in 1 ms, unless these or
 * a batch policy are configured. A cohort by key is the largest group of events with the same key near the head. With
 * a linger time, a batch that is not full is delayed until its oldest event has waited that long
 * (Larus & Parkes, Cohort Scheduling, 2002).
 */
#ifndef WEIR_STAGE_COHORT_H
#define WEIR_STAGE_COHORT_H

#include "stage/sink.h"

/** Data needed to release a batch after it has been handled. */
struct cohort {
	int part;     /* for queue_release */
	bool counted; /* the queue counts the batch as in a handler (struct keep) */
};

/** Longest service time of a batch, unless cohorts are configured. It is bounded because the events
 *  of a batch, and later events of a higher class, wait until the batch is finished. 1 ms is a
 *  guess: a twentieth of a short objective (20 ms), and 50 times the cost of a hand-off. */
#define COHORT_NS 1000000

/** Most events that a batch of `s` may have now, taken by the calling thread. */
static inline int cohort_largest(const struct sink *s)
{
	int64_t linger_ns = atomic_load_explicit(&s->linger_ns, memory_order_relaxed);
	int max = atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
	const struct local *l = thread_self()->local[s->id];
	int64_t service_ns = l->service_ns;

	if (linger_ns > 0 || s->cohort_by_key || l->batched)
		return max;
	if (service_ns < 0) /* not measured yet, so it may be long */
		return 1;
	if (service_ns * max <= COHORT_NS)
		return max;
	return service_ns >= COHORT_NS ? 1 : (int)(COHORT_NS / service_ns);
}

/** Take a batch of at most `most` events for thread `rank` of `n_ranks` into ev[most], and fill in
 *  *cohort. Returns the size of the batch. If it is 0, *ready_ns is the time at which to try again, or
 *  INT64_MAX if the thread should wait until it is woken. Handler threads only; takes the queue's
 *  lock. `cell` is as in struct queue_take. */
int cohort_take(struct sink *s, int rank, int n_ranks, int most, int64_t now_ns,
    const struct cell *cell, struct weir_event **ev, struct cohort *cohort, int64_t *ready_ns);

/** Whether a sleeping thread must be woken when the queue has grown from `before` to `length`
 *  events. With a linger time, not every event needs a wake-up. */
bool cohort_wakes(const struct sink *s, uint32_t before, uint32_t length);

#endif
