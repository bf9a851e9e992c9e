/* SPDX-License-Identifier: MIT */
/* Lists of the events that wait on one core; see cell.h. */
#include "event/cell.h"

#include <stddef.h>
#include <string.h>

static void add(atomic_uint *n, uint32_t by)
{
	atomic_store_explicit(
	    n, atomic_load_explicit(n, memory_order_relaxed) + by, memory_order_relaxed);
}

static int oldest_class(const struct cell *cell)
{
	int oldest = __builtin_ctz(cell->filled);

	for (unsigned left = cell->filled; left; left &= left - 1) {
		int c = __builtin_ctz(left);
		if (cell->lane[c].head->queued_ns < cell->lane[oldest].head->queued_ns)
			oldest = c;
	}
	return oldest;
}

static int64_t oldest_in(const struct cell *cell, int class_id)
{
	const struct cell_lane *l = &cell->lane[class_id];

	if (WEIR_LIKELY(!cell->stacked))
		return l->head->queued_ns;
	const struct weir_event *last =
	    (const void *)((const char *)l->tail - offsetof(struct weir_event, next));

	return last->queued_ns < l->head->queued_ns ? last->queued_ns : l->head->queued_ns;
}

static inline void note_oldest(struct cell *cell)
{
	int64_t ns = INT64_MAX;

	for (unsigned left = cell->filled; left; left &= left - 1) {
		int64_t lane_ns = oldest_in(cell, __builtin_ctz(left));
		ns = lane_ns < ns ? lane_ns : ns;
	}
	atomic_store_explicit(&cell->oldest_ns, ns, memory_order_relaxed);
}

void cell_init(struct cell *cell)
{
	memset(cell, 0, sizeof(*cell));
	cell->oldest_ns = INT64_MAX;
}

void cell_put_any(struct cell *cell, int class_id, struct weir_event *first,
    struct weir_event *last, uint32_t n, bool front)
{
	struct cell_lane *l = &cell->lane[class_id];
	bool heads = !l->head || front; /* the lane gets a new first event */

	if (!l->head) {
		last->next = NULL;
		l->head = first;
		l->tail = &last->next;
	} else if (front) {
		last->next = l->head;
		l->head = first;
	} else {
		last->next = NULL;
		*l->tail = first;
		l->tail = &last->next;
	}
	cell->filled |= (uint8_t)(1U << class_id);
	cell->stacked |= front;
	add(&l->n, n);
	add(&cell->n, n);
	if (heads)
		note_oldest(cell);
}

/* Take at most `max` events of one class; with `alike`, only those that were queued at the same
 * time as the first. */
static inline int take_class(
    struct cell *cell, int class_id, int max, bool alike, struct weir_event **out)
{
	struct cell_lane *l = &cell->lane[class_id];
	struct weir_event *ev = l->head;
	int64_t queued_ns = ev->queued_ns;
	int n = 0;

	while (ev && n < max && (!alike || ev->queued_ns == queued_ns)) {
		out[n++] = ev;
		ev = ev->next;
	}
	l->head = ev;
	if (!ev)
		cell->filled &= (uint8_t) ~(1U << class_id);
	add(&l->n, -(uint32_t)n);
	add(&cell->n, -(uint32_t)n);
	return n;
}

int cell_take_any(struct cell *cell, int max, bool fifo, struct weir_event **out)
{
	int n = 0;

	if (WEIR_UNLIKELY(cell->serial))
		return cell_take_serial(cell, max, out);
	while (n < max && cell->filled) {
		unsigned filled = cell->filled;
		bool several = (filled & (filled - 1)) != 0;
		if (WEIR_LIKELY(!several)) {
			n += take_class(cell, __builtin_ctz(filled), max - n, false, out + n);
			break;
		}
		int c = fifo ? oldest_class(cell) : __builtin_ctz(filled);
		n += take_class(cell, c, max - n, fifo, out + n);
	}
	note_oldest(cell);
	return n;
}
