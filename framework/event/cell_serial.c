/* SPDX-License-Identifier: MIT */
/*
 * The cell of a serial stage. Its events are all in lane 0, in the order in which they came, since
 * events of one key must not overtake each other because of their classes. Each lane counts the
 * events of its class, as in other cells.
 */
#include "event/cell.h"
#include "event/queue.h"

static void add(atomic_uint *n, uint32_t by)
{
	atomic_store_explicit(
	    n, atomic_load_explicit(n, memory_order_relaxed) + by, memory_order_relaxed);
}

static void note_head(struct cell *cell)
{
	const struct weir_event *head = cell->lane[0].head;

	cell->filled = head != NULL;
	atomic_store_explicit(
	    &cell->oldest_ns, head ? head->queued_ns : INT64_MAX, memory_order_relaxed);
}

void cell_put_serial(struct cell *cell, struct weir_event *first, struct weir_event *last,
    const uint32_t *of_class, int n_classes)
{
	struct cell_lane *l = &cell->lane[0];
	bool heads = !l->head;

	last->next = NULL;
	for (int c = 0; c < n_classes; c++) {
		if (of_class[c] == 0)
			continue;
		add(&cell->lane[c].n, of_class[c]);
		add(&cell->n, of_class[c]);
	}
	if (heads)
		l->head = first;
	else
		*l->tail = first;
	l->tail = &last->next;
	if (heads)
		note_head(cell);
}

int cell_take_serial(struct cell *cell, int max, struct weir_event **out)
{
	struct cell_lane *l = &cell->lane[0];
	struct weir_event *ev = l->head;
	int n = 0;

	/* the count of a class is written once for a run of events of the class */
	while (ev && n < max) {
		int class_id = ev->class_id, began = n;
		do {
			out[n++] = ev;
			ev = ev->next;
		} while (ev && n < max && ev->class_id == class_id);
		add(&cell->lane[class_id].n, -(uint32_t)(n - began));
	}
	l->head = ev;
	add(&cell->n, -(uint32_t)n);
	note_head(cell);
	return n;
}

uint32_t cell_take_slots(struct cell *cell, const struct slots *slots, struct weir_event **list)
{
	struct weir_event **at = &cell->lane[0].head, **tail = list, *ev;
	uint32_t n = 0;

	while ((ev = *at)) {
		if (!slots_has(slots, ev->key)) {
			at = &ev->next;
			continue;
		}
		*at = ev->next;
		add(&cell->lane[ev->class_id].n, -1U);
		*tail = ev;
		tail = &ev->next;
		n++;
	}
	*tail = NULL;
	cell->lane[0].tail = at;
	add(&cell->n, -n);
	note_head(cell);
	return n;
}

void cell_count_slots(const struct cell *cell, uint32_t most, uint32_t *count)
{
	const struct weir_event *ev = cell->lane[0].head;

	for (uint32_t i = 0; ev && i < most; i++, ev = ev->next)
		count[ev->key % QUEUE_SLOTS]++;
}
