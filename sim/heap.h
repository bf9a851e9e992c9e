/* SPDX-License-Identifier: MIT */
/*
 * Orders future events by time, in a heap with four children per node. Such a heap has half the
 * levels and half the cache misses of a binary one (Larkin, Sen, Tarjan: A Back-to-Basics Empirical
 * Study of Priority Queues, 2014). Entries with equal times are removed in order of insertion.
 */
#ifndef WEIR_SIM_HEAP_H
#define WEIR_SIM_HEAP_H

#include <stdint.h>

struct heap_entry {
	int64_t at; /* a time, in any unit */
	uint32_t order;
	uint32_t what; /* free for use by the caller */
};

struct heap {
	struct heap_entry *e;
	uint32_t n, capacity;
	uint32_t pushed; /* order of the next entry; wraps around */
};

/** Add an entry. Returns its order, which identifies it. Sets *rc to WEIR_ENOMEM on failure and
 * leaves it unchanged on success. */
uint32_t heap_push(struct heap *h, int64_t at, uint32_t what, int *rc);

/** Remove and return the first entry; the heap must not be empty. */
struct heap_entry heap_pop(struct heap *h);

/** Return the time of the first entry, or INT64_MAX if the heap is empty. */
static inline int64_t heap_first(const struct heap *h)
{
	return h->n ? h->e[0].at : INT64_MAX;
}

/** Free the entries. */
void heap_fini(struct heap *h);

#endif
