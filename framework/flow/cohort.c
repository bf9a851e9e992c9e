/* SPDX-License-Identifier: MIT */
/* Batch formation; see cohort.h. */
#include "flow/cohort.h"

int cohort_take(struct sink *s, int rank, int n_ranks, int64_t now_ns, struct weir_event **ev,
    int *part, int64_t *ready_ns)
{
	struct queue_take take = {
	    .rank = rank,
	    .n_ranks = n_ranks,
	    .max = atomic_load_explicit(&s->cohort_max, memory_order_relaxed),
	    .sharers = s->queue.leasing ? 1 : n_ranks,
	    .linger_ns = atomic_load_explicit(&s->linger_ns, memory_order_relaxed),
	    .now_ns = now_ns,
	    .by_key = s->cohort_by_key,
	};
	int n = queue_pop(&s->queue, &take, ev);

	*part = take.part;
	*ready_ns = take.ready_ns;
	/* The sender wrote these headers last; fetch them side by side, not one after the other. */
	for (int i = 0; i < n; i++)
		__builtin_prefetch(ev[i], 1);
	return n;
}

bool cohort_wakes(const struct sink *s, uint32_t before, uint32_t length)
{
	if (atomic_load_explicit(&s->linger_ns, memory_order_relaxed) == 0)
		return true;
	/* Somebody must mind the clock of the first; somebody must take the full batch. */
	return before == 0 ||
	    length >= (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
}
