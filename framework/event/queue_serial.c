/* SPDX-License-Identifier: MIT */
/*
 * The queue of a serial stage: each partition is the inbox of a core (sched/serial.h).
 *
 * Events of one key must be taken in the order in which they were pushed, whatever their classes. So
 * each event has a place in that order, which its lane stores in `key`, and the lane whose first
 * event has the lowest place is served first.
 */
#include "event/queue.h"

#include <limits.h>

#include "event/lane.h"

/* The first place; those behind are higher, those in front are lower. */
#define FIRST_PLACE (1ULL << 62)

#define MOVE_BATCH 64 /* events that are moved at a time */

void queue_set_map(struct queue *q, const _Atomic uint8_t *map)
{
	WEIR_ASSERT(q->keyed && queue_length(q) == 0);
	lock_take(&q->lock);
	q->map = map;
	q->behind = q->front = FIRST_PLACE;
	lock_release(&q->lock);
}

uint64_t queue_parts_locked(const struct queue *q, struct weir_event *const *ev, int n)
{
	uint64_t parts = 0;

	for (int i = 0; i < n; i++)
		parts |= 1ULL << queue_part(q, ev[i]->key);
	return parts;
}

/* Return the lane whose first event is next, or NULL. *until receives the place of the first event of
 * the others, UINT64_MAX if there is none. */
static struct lane *next_lane(struct partition *part, int n_classes, uint64_t *until)
{
	struct lane *next = NULL;
	uint64_t least = UINT64_MAX;

	*until = UINT64_MAX;
	for (int c = 0; c < n_classes; c++) {
		struct lane *l = &part->lane[c];
		if (l->n == 0)
			continue;
		uint64_t place = l->key[l->head];
		if (place < least) {
			*until = least;
			least = place;
			next = l;
		} else if (place < *until) {
			*until = place;
		}
	}
	return next;
}

int queue_take_in_order(
    const struct queue *q, struct partition *part, int max, struct weir_event **out)
{
	struct lane *l;
	uint64_t until;
	int n = 0;

	while (n < max && (l = next_lane(part, q->n_classes, &until))) {
		uint32_t run = 1;
		while (run < l->n && n + (int)run < max &&
		       l->key[(l->head + run) & (l->capacity - 1)] < until)
			run++;
		n += lane_take(l, (int)run, out + n);
	}
	return n;
}

int queue_push_front_locked(struct queue *q, struct weir_event **ev, int n)
{
	lock_assert_held(&q->lock);
	for (int i = 0; i < n; i++) {
		struct lane *l = &q->part[queue_part(q, ev[i]->key)].lane[ev[i]->class_id];
		if (lane_reserve(l, (uint32_t)n, q->keyed) != 0)
			return 0;
	}
	for (int i = n; i-- > 0;) {
		struct partition *part = &q->part[queue_part(q, ev[i]->key)];
		struct lane *l = &part->lane[ev[i]->class_id];
		l->head = (l->head - 1) & (l->capacity - 1);
		l->slot[l->head] = ev[i];
		l->key[l->head] = --q->front;
		l->n++;
		part_add(part, 1);
	}
	/* seq_cst: as in queue_push_locked */
	atomic_store(&q->length, queue_length(q) + (uint32_t)n);
	return n;
}

/* Append ev[0..n) to the lanes of a partition, which have room; a run of events of a class at once. */
static void append(
    struct queue *q, struct partition *part, struct weir_event **ev, int n) WEIR_NO_THREAD_SAFETY
{
	for (int i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && ev[i + run]->class_id == ev[i]->class_id; run++)
			;
		lane_append(q, &part->lane[ev[i]->class_id], ev + i, (uint32_t)run);
	}
}

void queue_push_to_locked(struct queue *q, struct weir_event **ev, int n, int part)
{
	append(q, &q->part[part], ev, n);
	part_add(&q->part[part], n);
	/* seq_cst: as in queue_push_locked */
	atomic_store(&q->length, queue_length(q) + (uint32_t)n);
}

int queue_reserve_locked(struct queue *q, int from, int to, uint32_t more)
{
	for (int c = 0; c < q->n_classes; c++) {
		uint32_t n = q->part[from].lane[c].n + more;
		if (n > 0 && lane_reserve(&q->part[to].lane[c], n, q->keyed) != 0)
			return WEIR_ENOMEM;
	}
	return 0;
}

static void move_back(struct partition *from, struct partition *to, const struct slots *slots)
{
	struct weir_event **at = &from->back, *ev;

	while ((ev = *at)) {
		if (!slots_has(slots, ev->key)) {
			at = &ev->next;
			continue;
		}
		*at = ev->next;
		ev->next = to->back;
		to->back = ev;
	}
}

/* All events of the partition pass by once: those that stay are appended again. */
uint32_t queue_move_slots_locked(struct queue *q, int from, int to, const struct slots *slots)
{
	struct partition *a = &q->part[from], *b = &q->part[to];
	struct weir_event *ev[MOVE_BATCH], *goes[MOVE_BATCH];
	int left = (int)queue_part_length(q, from), moved = 0;

	lock_assert_held(&q->lock);
	for (int n; left > 0; left -= n) {
		int n_go = 0, n_stay = 0;
		n = queue_take_in_order(q, a, left < MOVE_BATCH ? left : MOVE_BATCH, ev);
		WEIR_ASSERT(n > 0);
		for (int i = 0; i < n; i++) {
			if (slots_has(slots, ev[i]->key))
				goes[n_go++] = ev[i];
			else
				ev[n_stay++] = ev[i];
		}
		append(q, a, ev, n_stay);
		append(q, b, goes, n_go);
		moved += n_go;
	}
	part_add(a, -moved);
	part_add(b, moved);
	move_back(a, b, slots);
	/* seq_cst: as in queue_push_locked, for a core that is about to park */
	atomic_store(&q->length, queue_length(q));
	return (uint32_t)moved;
}

void queue_count_slots(struct queue *q, int part, uint32_t most, uint32_t *count)
{
	lock_take(&q->lock);
	for (int c = 0; c < q->n_classes; c++) {
		const struct lane *l = &q->part[part].lane[c];
		for (uint32_t i = 0; i < l->n && i < most; i++)
			count[l->slot[(l->head + i) & (l->capacity - 1)]->key % QUEUE_SLOTS]++;
	}
	lock_release(&q->lock);
}
