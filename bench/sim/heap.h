/* SPDX-License-Identifier: MIT */
/*
 * What will happen, by time: a heap with four children to a node, for half the levels and cache
 * misses of two (Larkin, Sen, Tarjan: A Back-to-Basics Empirical Study of Priority Queues, 2014).
 * Entries of one time come out in the order in which they went in.
 */
#ifndef WEIR_SIM_HEAP_H
#define WEIR_SIM_HEAP_H

#include <stdint.h>

struct heap_entry {
	int64_t at; /* a time, in whatever unit */
	uint32_t order;
	uint32_t what; /* the user's */
};

struct heap {
	struct heap_entry *e;
	uint32_t n, capacity;
	uint32_t pushed; /* the next entry's order; wraps */
};

/** Add an entry. Returns its order, a name for it. 0 or WEIR_ENOMEM through *rc, which is left
 *  alone when all is well. */
uint32_t heap_push(struct heap *h, int64_t at, uint32_t what, int *rc);

/** Remove and return the first; the heap is not empty. */
struct heap_entry heap_pop(struct heap *h);

/** Time of the first, INT64_MAX when empty. */
static inline int64_t heap_first(const struct heap *h)
{
	return h->n ? h->e[0].at : INT64_MAX;
}

/** Free what it holds. */
void heap_fini(struct heap *h);

#endif
