/* SPDX-License-Identifier: MIT */
/*
 * A cell: the events of one stage that wait on one core of a core group (sched/cores.h).
 *
 * Only the thread of that core touches a cell, so it needs no lock: the events are linked through
 * `next`, one list per class. Other threads read only the lengths and the time of the oldest event,
 * which are atomic for that reason. Events of a stage wait in two kinds of places: in cells, and,
 * if a cell must not have them (sched/splice.c), in the queue of the stage.
 *
 * | call                                    | threads                           |
 * |-----------------------------------------|-----------------------------------|
 * | cell_init                               | before the cell is shared         |
 * | cell_length, cell_class, cell_oldest_ns | any                               |
 * | the other calls                         | the owner: the thread of the core |
 */
#ifndef WEIR_EVENT_CELL_H
#define WEIR_EVENT_CELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/event.h>
#include <weir/operate.h>

/** The events of one class. */
struct cell_lane {
	struct weir_event *head, **tail; /* `tail` is valid only while there is a head */
	atomic_uint n;
};

struct slots;

struct cell {
	WEIR_ALIGNED atomic_uint n; /* events in all lanes */
	uint8_t filled;             /* bit c: lane c has events */
	bool stacked;               /* events have been put in front */
	/* the service of the stage takes so long that its events are sent to the queue */
	bool slow;
	/* of a serial stage: lane 0 has the events of all classes, in the order in which they came */
	bool serial;
	/* when the first or the last event of a lane was queued, the earliest; INT64_MAX: none */
	_Atomic int64_t oldest_ns;
	struct cell_lane lane[WEIR_CLASSES_MAX];
};

/** Initialise a cell without events. */
void cell_init(struct cell *cell);

/** Number of events, or of events of the class. */
static inline uint32_t cell_length(const struct cell *cell)
{
	return atomic_load_explicit(&cell->n, memory_order_relaxed);
}

static inline uint32_t cell_class(const struct cell *cell, int class_id)
{
	return atomic_load_explicit(&cell->lane[class_id].n, memory_order_relaxed);
}

/** When the first event of the class was queued; there must be one. The owner only. */
static inline int64_t cell_oldest_class_ns(const struct cell *cell, int class_id)
{
	return cell->lane[class_id].head->queued_ns;
}

/* Slow paths of cell_put and cell_take. */
void cell_put_any(struct cell *cell, int class_id, struct weir_event *first,
    struct weir_event *last, uint32_t n, bool front);
int cell_take_any(struct cell *cell, int max, bool fifo, struct weir_event **out);

/** Append the `n` events first .. last, which are linked by `next` and have class `class_id`; with
 *  `front`, put them before the others. */
static inline void cell_put(struct cell *cell, int class_id, struct weir_event *first,
    struct weir_event *last, uint32_t n, bool front)
{
	struct cell_lane *l = &cell->lane[class_id];

	if (cell->filled || cell->stacked || front) {
		cell_put_any(cell, class_id, first, last, n, front);
		return;
	}
	last->next = NULL;
	l->head = first;
	l->tail = &last->next;
	cell->filled = (uint8_t)(1U << class_id);
	atomic_store_explicit(&l->n, n, memory_order_relaxed);
	atomic_store_explicit(&cell->n, n, memory_order_relaxed);
	atomic_store_explicit(&cell->oldest_ns, first->queued_ns, memory_order_relaxed);
}

/** Take at most `max` events into `out`: the highest class first or, with `fifo`, the oldest first.
 *  Returns their number. */
static inline int cell_take(struct cell *cell, int max, bool fifo, struct weir_event **out)
{
	unsigned filled = cell->filled, several = filled & (filled - 1);
	int n = (int)cell_length(cell);

	if (!filled || several || cell->serial || n > max)
		return cell_take_any(cell, max, fifo, out);
	struct cell_lane *l = &cell->lane[__builtin_ctz(filled)];
	struct weir_event *ev = l->head;
	for (int i = 0; i < n; i++, ev = ev->next)
		out[i] = ev;
	l->head = NULL;
	cell->filled = 0;
	atomic_store_explicit(&l->n, 0, memory_order_relaxed);
	atomic_store_explicit(&cell->n, 0, memory_order_relaxed);
	atomic_store_explicit(&cell->oldest_ns, INT64_MAX, memory_order_relaxed);
	return n;
}

/** As cell_put, for a cell of a serial stage and events of any classes, of_class[c] of each. */
void cell_put_serial(struct cell *cell, struct weir_event *first, struct weir_event *last,
    const uint32_t *of_class, int n_classes);
/** As cell_take, in the order in which the events came. */
int cell_take_serial(struct cell *cell, int max, struct weir_event **out);
/** Take the events of the slots into *list, linked by `next`. Returns their number. */
uint32_t cell_take_slots(struct cell *cell, const struct slots *slots, struct weir_event **list);
/** Add the number of events of each slot, of the first `most` events, to count[QUEUE_SLOTS]. */
void cell_count_slots(const struct cell *cell, uint32_t most, uint32_t *count);

/** Time at which the oldest event was queued; INT64_MAX if there is none. If events were both
 *  appended and put in front (cell_put), an older one may be between the first and the last. */
static inline int64_t cell_oldest_ns(const struct cell *cell)
{
	return atomic_load_explicit(&cell->oldest_ns, memory_order_relaxed);
}

/** Add descriptions of the events to out[0..n), as queue_peek: the `max` oldest remain, oldest
 *  first. Returns their number. */
int cell_peek(const struct cell *cell, int64_t now_ns, struct weir_queued *out, int n, int max);

#endif
