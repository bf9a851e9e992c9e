/* SPDX-License-Identifier: MIT */
/* The lanes of a queue, for the files of queue.h. The caller holds the queue's lock. */
#ifndef WEIR_EVENT_LANE_H
#define WEIR_EVENT_LANE_H

#include "event/queue.h"

/** Append ev[0..n). Returns `n`, or 0 if memory is short. */
int lane_append(struct queue *q, struct lane *l, struct weir_event **ev, uint32_t n)
    WEIR_REQUIRES(&q->lock);
/** Take the first `max` events. Returns their number. */
int lane_take(struct lane *l, int max, struct weir_event **out);
/** Make room for `n` more events. Returns 0 or WEIR_ENOMEM. */
int lane_reserve(struct lane *l, uint32_t n, bool keyed);

/** Add `n`, which may be negative, to the number of events in the lanes of a partition. */
static inline void part_add(struct partition *part, int n)
{
	atomic_store_explicit(&part->n,
	    atomic_load_explicit(&part->n, memory_order_relaxed) + (uint32_t)n,
	    memory_order_relaxed);
}

#endif
