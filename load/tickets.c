/* SPDX-License-Identifier: MIT */
/* The queue and the heap of tickets; see tickets.h. Both start with 8 KiB and double in size when
 * they are full. */
#include "load/tickets.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 256

_Static_assert(sizeof(struct ticket) == 32, "a million of them may wait");

static bool queue_grow(struct ticket_queue *q)
{
	size_t room = q->room ? q->room * 2 : ROOM_FIRST;

	if (room > TICKETS_MAX)
		return false;
	struct ticket *at = malloc(room * sizeof(*at));
	if (!at)
		return false;
	for (size_t i = 0; i < q->n; i++)
		at[i] = q->at[(q->head + i) & (q->room - 1)];
	free(q->at);
	*q = (struct ticket_queue){.at = at, .n = q->n, .room = room};
	return true;
}

bool ticket_queue_push(struct ticket_queue *q, const struct ticket *t)
{
	if (q->n == q->room && !queue_grow(q))
		return false;
	q->at[(q->head + q->n) & (q->room - 1)] = *t;
	q->n++;
	return true;
}

bool ticket_queue_push_front(struct ticket_queue *q, const struct ticket *t)
{
	if (q->n == q->room && !queue_grow(q))
		return false;
	q->head = (q->head - 1) & (q->room - 1);
	q->at[q->head] = *t;
	q->n++;
	return true;
}

struct ticket ticket_queue_pop(struct ticket_queue *q)
{
	struct ticket t = q->at[q->head];

	q->head = (q->head + 1) & (q->room - 1);
	q->n--;
	return t;
}

const struct ticket *ticket_queue_first(const struct ticket_queue *q)
{
	return &q->at[q->head];
}

void ticket_queue_fini(struct ticket_queue *q)
{
	free(q->at);
	*q = (struct ticket_queue){0};
}

static bool heap_grow(struct ticket_heap *h)
{
	size_t room = h->room ? h->room * 2 : ROOM_FIRST;

	if (room > TICKETS_MAX)
		return false;
	struct ticket *at = realloc(h->at, room * sizeof(*at));
	if (!at)
		return false;
	h->at = at;
	h->room = room;
	return true;
}

bool ticket_heap_push(struct ticket_heap *h, const struct ticket *t)
{
	size_t i = h->n;

	if (h->n == h->room && !heap_grow(h))
		return false;
	h->n++;
	for (; i > 0 && h->at[(i - 1) / 2].attempt_ns > t->attempt_ns; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = *t;
	return true;
}

struct ticket ticket_heap_pop(struct ticket_heap *h)
{
	struct ticket first = h->at[0], last = h->at[--h->n];
	size_t i = 0;

	for (size_t child = 1; child < h->n; child = 2 * i + 1) {
		if (child + 1 < h->n && h->at[child + 1].attempt_ns < h->at[child].attempt_ns)
			child++;
		if (h->at[child].attempt_ns >= last.attempt_ns)
			break;
		h->at[i] = h->at[child];
		i = child;
	}
	if (h->n > 0)
		h->at[i] = last;
	return first;
}

void ticket_heap_fini(struct ticket_heap *h)
{
	free(h->at);
	*h = (struct ticket_heap){0};
}
