/* SPDX-License-Identifier: MIT */
/* Takes batches from the queues of a pool, runs and releases them; see handler.h. */
#include "sched/handler.h"
#include "stage/cohort.h"
#include "stage/stage.h"

bool batch_due(struct handler *h, int i)
{
	struct sink *s = h->pool->sinks[i];

	uint32_t least = 1;

	if (WEIR_UNLIKELY(h->pool->copies > 1) &&
	    queue_copy_length(&s->queue, handler_copy(h)) == 0)
		return false;
	if (h->ready_ns[i] != INT64_MAX) /* its batch lingers: only a full one is due */
		least = (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
	int n, rank = handler_rank(h, &s->queue, &n);
	return queue_due(&s->queue, rank, n, least); /* seq_cst: see rest.c */
}

int batch_take_expired(struct handler *h, int64_t now_ns)
{
	for (int i = 0; i < h->pool->n_sinks; i++) {
		struct sink *s = h->pool->sinks[i];
		if (WEIR_LIKELY(!s->expire))
			continue;
		if (atomic_load_explicit(&s->expires_ns, memory_order_relaxed) <= now_ns)
			s->expire(s, now_ns);
		int n, rank = handler_rank(h, &s->queue, &n);
		h->n_batch = queue_take_back(&s->queue, rank, n, h->batch, &h->part);
		if (h->n_batch == 0)
			continue;
		h->sink = s;
		h->expired = true;
		return h->n_batch;
	}
	return 0;
}

int batch_take(struct handler *h, int i, int n, int most, const struct cell *cell, int64_t now_ns)
{
	struct sink *s = h->pool->sinks[i];
	struct cohort c;
	int n_ranks, rank = handler_rank(h, &s->queue, &n_ranks);
	int m =
	    cohort_take(s, rank, n_ranks, most, now_ns, cell, h->batch + n, &c, &h->ready_ns[i]);

	if (m == 0)
		return 0;
	h->sink = s;
	h->part = c.part;
	h->n_batch = n + m;
	if (WEIR_UNLIKELY(c.counted))
		hold_reserve(thread_self(), &s->queue, h->batch + n, m);
	return m;
}

void batch_release_any(struct handler *h)
{
	struct sink *s = h->sink;

	if (WEIR_UNLIKELY(h->expired))
		stage_expired_over(s, h->n_batch);
	bool more = queue_release(&s->queue, h->part);
	/* the batch may have used up the width, so that threads of other partitions have parked */
	if (WEIR_UNLIKELY(atomic_load_explicit(&s->queue.width, memory_order_relaxed) > 0) &&
	    s->queue.n_parts > 1 && atomic_load(&s->queue.length) > 0)
		pool_wake_parts(h->pool, ~0ULL);

	h->sink = NULL;
	h->n_batch = 0;
	if (more && s->queue.n_parts > 1 && h->part % pool_seats(h->pool) != handler_seat(h))
		pool_wake_parts(h->pool, 1ULL << h->part);
}
