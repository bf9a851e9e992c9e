/* SPDX-License-Identifier: MIT */
/* Orders future events by time; see heap.h. */
#include "heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include <weir/error.h>

#define FIRST_CAPACITY 256
#define CHILDREN       4

/* Whether `a` must be removed before `b`. The member `order` wraps around. Its comparison is
 * correct as long as the orders of all entries in the heap differ by less than half of the
 * range. */
static bool before(const struct heap_entry *a, const struct heap_entry *b)
{
	return a->at != b->at ? a->at < b->at : (int32_t)(a->order - b->order) < 0;
}

static int grow(struct heap *h)
{
	uint32_t capacity = h->capacity ? h->capacity * 2 : FIRST_CAPACITY;
	struct heap_entry *e = realloc(h->e, capacity * sizeof(*e));

	if (!e)
		return WEIR_ENOMEM;
	h->e = e;
	h->capacity = capacity;
	return 0;
}

uint32_t heap_push(struct heap *h, int64_t at, uint32_t what, int *rc)
{
	struct heap_entry new = {.at = at, .order = h->pushed++, .what = what};

	if (h->n == h->capacity && grow(h) != 0) {
		*rc = WEIR_ENOMEM;
		return new.order;
	}
	uint32_t i = h->n++;
	while (i > 0) {
		uint32_t up = (i - 1) / CHILDREN;
		if (!before(&new, &h->e[up]))
			break;
		h->e[i] = h->e[up];
		i = up;
	}
	h->e[i] = new;
	return new.order;
}

struct heap_entry heap_pop(struct heap *h)
{
	struct heap_entry first = h->e[0], last = h->e[--h->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = i * CHILDREN + 1, end = child + CHILDREN, least = child;
		if (child >= h->n)
			break;
		if (end > h->n)
			end = h->n;
		for (uint32_t c = child + 1; c < end; c++)
			if (before(&h->e[c], &h->e[least]))
				least = c;
		if (!before(&h->e[least], &last))
			break;
		h->e[i] = h->e[least];
		i = least;
	}
	h->e[i] = last;
	return first;
}

void heap_fini(struct heap *h)
{
	free(h->e);
	h->e = NULL;
	h->n = h->capacity = 0;
}
