/* SPDX-License-Identifier: MIT */
/* Counts events that have left a queue but still count against its limit; see struct keep in
 * queue.h. */
#include "event/queue.h"

static int64_t at_least_none(int n)
{
	return n > 0 ? n : 0;
}

int64_t queue_held(const struct queue *q, int class_id)
{
	return at_least_none(atomic_load_explicit(&q->keep.held[class_id], memory_order_relaxed));
}

int64_t queue_count_kept(const struct queue *q, int class_id)
{
	/* Read `taken` first. An event that becomes held is added to `held` before it is subtracted
	 * from `taken`, so in this order it is counted at least once. */
	int taken = atomic_load_explicit(&q->keep.taken[class_id], memory_order_acquire);
	int held = atomic_load_explicit(&q->keep.held[class_id], memory_order_relaxed);

	return at_least_none(taken + held);
}

int64_t queue_count_kept_all(const struct queue *q)
{
	int64_t n = 0;

	for (int c = 0; c < q->n_classes; c++)
		n += queue_count_kept(q, c);
	return n;
}

void queue_set_width(struct queue *q, int width)
{
	/* The events in handlers count from now on; see struct keep. */
	if (width > 0)
		atomic_store(&q->keeps, true);
	atomic_store(&q->width, width);
}

int queue_count_width_left(const struct queue *q, int width)
{
	int64_t kept = 0;

	/* seq_cst: a thread that is about to park raises n_idle and then reads these counters, and
	 * a thread that ends a hold lowers a counter and then reads n_idle (sched/rest.c). So one of
	 * the two sees what the other has written. Per class, `taken` is read first, as in
	 * queue_count_kept. */
	for (int c = 0; c < q->n_classes; c++) {
		int taken = atomic_load(&q->keep.taken[c]);
		kept += at_least_none(taken + atomic_load(&q->keep.held[c]));
	}
	return kept < width ? width - (int)kept : 0;
}

void queue_hold(struct queue *q, int class_id, int n)
{
	/* Count first: a thread that sees `keeps` set must also see this count. */
	atomic_fetch_add(&q->keep.held[class_id], n);
	if (!queue_keeps(q))
		atomic_store(&q->keeps, true);
}

void queue_taken(struct queue *q, int class_id, int n)
{
	atomic_fetch_add(&q->keep.taken[class_id], n);
}

void queue_return(struct queue *q, const int *taken)
{
	for (int c = 0; c < q->n_classes; c++)
		if (taken[c])
			queue_taken(q, c, -taken[c]);
}
