/* SPDX-License-Identifier: MIT */
/*
 * Events whose tickets have expired (weir_hold_until), on their way back to the stage.
 *
 * They pass through the queue, because its partitions and leases decide which thread may call the
 * stage. They are neither queued nor counted again: until the stage ends them, they are held. So
 * they wait neither for queued events, nor for the width, nor for the end of a pause.
 */
#include "event/queue.h"

void queue_give_back(struct queue *q, struct weir_event *list)
{
	uint32_t n = 0;

	lock_take(&q->lock);
	while (list) {
		struct weir_event *ev = list;
		struct partition *part = &q->part[queue_part(q, ev->key)];
		list = ev->next;
		ev->next = part->back;
		part->back = ev;
		n++;
	}
	/* seq_cst: pairs with queue_due, which handler_park (sched/rest.c) calls */
	atomic_store(&q->n_back, atomic_load_explicit(&q->n_back, memory_order_relaxed) + n);
	lock_release(&q->lock);
}

static struct partition *part_back(struct queue *q, int rank, int n_ranks, int *at)
    WEIR_REQUIRES(&q->lock)
{
	for (int p = q->n_parts == 1 ? 0 : rank; p < q->n_parts; p += n_ranks) {
		if (!q->part[p].back || q->part[p].leased)
			continue;
		*at = p;
		return &q->part[p];
	}
	return NULL;
}

bool queue_back_due(struct queue *q, int rank, int n_ranks)
{
	int at;

	if (atomic_load(&q->n_back) == 0)
		return false;
	lock_take(&q->lock);
	bool due = part_back(q, rank, n_ranks, &at) != NULL;
	lock_release(&q->lock);
	return due;
}

int queue_take_back(struct queue *q, int rank, int n_ranks, struct weir_event **out, int *part)
{
	int n = 0;

	if (atomic_load_explicit(&q->n_back, memory_order_relaxed) == 0)
		return 0;
	lock_take(&q->lock);
	struct partition *p = part_back(q, rank, n_ranks, part);
	while (p && p->back && n < WEIR_BATCH_MAX) {
		out[n++] = p->back;
		p->back = p->back->next;
	}
	atomic_store_explicit(&q->n_back,
	    atomic_load_explicit(&q->n_back, memory_order_relaxed) - (uint32_t)n,
	    memory_order_relaxed);
	if (p)
		queue_lease_locked(q, p, true);
	lock_release(&q->lock);
	return n;
}
