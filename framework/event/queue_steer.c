/* SPDX-License-Identifier: MIT */
/* Closes, pauses and bounds the queue of a stage. */
#include "event/queue.h"

static void look_at_door(struct queue *q) WEIR_REQUIRES(&q->lock)
{
	atomic_store_explicit(
	    &q->by_door, q->closed || q->shut || queue_paused(q), memory_order_relaxed);
}

void queue_close(struct queue *q)
{
	lock_take(&q->lock);
	q->closed = true;
	look_at_door(q);
	lock_release(&q->lock);
}

static void divide_limit(struct queue *q, uint32_t limit) WEIR_REQUIRES(&q->lock)
{
	uint32_t each = queue_cell_share(limit, q->n_cells);
	uint32_t own = limit - each * (uint32_t)q->n_cells;

	q->limit = limit;
	atomic_store_explicit(
	    &q->own, own > q->in_excess ? own - q->in_excess : 0, memory_order_relaxed);
	/* release: a core that sees a larger share also sees that the queue has fewer slots
	 * (cores_room, sched/cores.h) */
	atomic_store_explicit(&q->cell_max, each, memory_order_release);
}

void queue_set_limit(struct queue *q, uint32_t limit)
{
	lock_take(&q->lock);
	divide_limit(q, limit);
	lock_release(&q->lock);
}

void queue_set_cells(struct queue *q, int n, uint32_t excess)
{
	lock_take(&q->lock);
	q->n_cells = n;
	q->in_excess = excess;
	divide_limit(q, q->limit);
	lock_release(&q->lock);
}

void queue_steer(struct queue *q, bool paused, bool shut)
{
	lock_take(&q->lock);
	q->shut = shut;
	atomic_store_explicit(&q->paused, paused, memory_order_relaxed);
	look_at_door(q);
	lock_release(&q->lock);
}
