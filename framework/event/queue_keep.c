/* SPDX-License-Identifier: MIT */
/* Counts events that have left a queue but still count against its limit; see struct keep in
 * queue.h. */
#include "event/queue.h"

static int64_t at_least_none(int n)
{
	return n > 0 ? n : 0;
}

/* The number of events in handlers of a count, and the number of held events. */
static int taken_of(int64_t count)
{
	return (int)(int32_t)(uint32_t)count;
}

static int held_of(int64_t count)
{
	return (int)((count - taken_of(count)) / KEEP_HELD);
}

static int64_t kept_of(int64_t count)
{
	return at_least_none(taken_of(count) + held_of(count));
}

int64_t queue_held(const struct queue *q, int class_id)
{
	int64_t count = atomic_load_explicit(&q->keep.count[class_id], memory_order_relaxed);

	return at_least_none(held_of(count));
}

int64_t queue_count_kept(const struct queue *q, int class_id)
{
	return kept_of(atomic_load_explicit(&q->keep.count[class_id], memory_order_relaxed));
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
	 * the two sees what the other has written. */
	for (int c = 0; c < q->n_classes; c++)
		kept += kept_of(atomic_load(&q->keep.count[c]));
	return kept < width ? width - (int)kept : 0;
}

void queue_hold(struct queue *q, int class_id, int n)
{
	/* Count first: a thread that sees `keeps` set must also see this count. */
	atomic_fetch_add(&q->keep.count[class_id], n * KEEP_HELD);
	if (!queue_keeps(q))
		atomic_store(&q->keeps, true);
}

void queue_taken(struct queue *q, int class_id, int n)
{
	atomic_fetch_add(&q->keep.count[class_id], n);
}

void queue_settle(struct queue *q, const int *held, const int *taken)
{
	bool holds = false;

	for (int c = 0; c < q->n_classes; c++) {
		if (held[c] != 0 || taken[c] != 0)
			atomic_fetch_add(&q->keep.count[c], held[c] * KEEP_HELD - taken[c]);
		holds |= held[c] != 0;
	}
	if (holds && !queue_keeps(q))
		atomic_store(&q->keeps, true);
}
