/* SPDX-License-Identifier: MIT */
/* Takes batches from a queue; see cohort.h. */
#include "stage/cohort.h"

int cohort_take(struct sink *s, int rank, int n_ranks, int most, int64_t now_ns,
    const struct cell *cell, struct weir_event **ev, struct cohort *cohort, int64_t *ready_ns)
{
	int max = cohort_largest(s);
	int64_t linger_ns = atomic_load_explicit(&s->linger_ns, memory_order_relaxed);
	struct queue_take take = {
	    .rank = rank,
	    .n_ranks = n_ranks,
	    .max = max < most ? max : most,
	    .sharers = s->queue.leasing || s->queue.map ? 1
		       : s->queue.copy_cores > 0        ? s->queue.copy_cores
							: n_ranks,
	    .linger_ns = linger_ns,
	    .now_ns = now_ns,
	    .by_key = s->cohort_by_key,
	    .cell = cell,
	};
	int n = queue_pop(&s->queue, &take, ev);

	*cohort = (struct cohort){.part = take.part, .counted = take.counted};
	*ready_ns = take.ready_ns;
	/* The headers are in the sender's cache. Prefetch all of them now, so that the misses
	 * overlap. */
	for (int i = 0; i < n; i++)
		__builtin_prefetch(ev[i], 1);
	return n;
}

bool cohort_wakes(const struct sink *s, uint32_t before, uint32_t length)
{
	/* `before` and `length` cover all partitions, so they do not show whether one of them is
	 * due. */
	if (s->queue.n_parts > 1 || atomic_load_explicit(&s->linger_ns, memory_order_relaxed) == 0)
		return true;
	/* The first event needs a thread that waits for the end of its linger time, and a full
	 * batch needs a thread that takes it. */
	return before == 0 ||
	       length >= (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
}
