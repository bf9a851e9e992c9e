/* SPDX-License-Identifier: MIT */
/* Batch formation; see cohort.h. */
#include "flow/cohort.h"

/* How long a batch may take when nobody asked for cohorts. A batch holds its events back until its
 * end and later ones of a higher class out: guess, a twentieth of the smallest objective in
 * overload.md (20 ms), and 50 times what a hand-over costs. */
#define BATCH_NS 1000000

static int largest(const struct sink *s, int64_t linger_ns)
{
	int max = atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
	const struct local *l = thread_self()->local[s->id];
	int64_t service_ns = l->service_ns;

	if (linger_ns > 0 || s->cohort_by_key || l->batched)
		return max;
	if (service_ns < 0) /* not measured yet: it may be slow */
		return 1;
	if (service_ns * max <= BATCH_NS)
		return max;
	return service_ns >= BATCH_NS ? 1 : (int)(BATCH_NS / service_ns);
}

int cohort_take(struct sink *s, int rank, int n_ranks, int64_t now_ns, struct weir_event **ev,
    int *part, int64_t *ready_ns)
{
	int64_t linger_ns = atomic_load_explicit(&s->linger_ns, memory_order_relaxed);
	struct queue_take take = {
	    .rank = rank,
	    .n_ranks = n_ranks,
	    .max = largest(s, linger_ns),
	    .sharers = s->queue.leasing ? 1 : n_ranks,
	    .linger_ns = linger_ns,
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
	/* Lengths are of all partitions: they say nothing about the one that was touched. */
	if (s->queue.n_parts > 1 || atomic_load_explicit(&s->linger_ns, memory_order_relaxed) == 0)
		return true;
	/* Somebody must mind the clock of the first; somebody must take the full batch. */
	return before == 0 ||
	       length >= (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
}
