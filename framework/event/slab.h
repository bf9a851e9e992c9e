/* SPDX-License-Identifier: MIT */
/*
 * Memory of events (weir_event_new): a depot that the threads of a graph share, and a cache of free
 * blocks in each thread. A block may be freed in another thread than the one that has taken it; full
 * runs of free blocks go back to the depot, so a thread that only frees feeds one that only takes
 * (magazines: Bonwick and Adams, Magazines and Vmem, 2001).
 */
#ifndef WEIR_EVENT_SLAB_H
#define WEIR_EVENT_SLAB_H

#include <stddef.h>
#include <stdint.h>

/** Number of block sizes: multiples of a cache line up to 1 KiB. Larger blocks come from malloc. A
 *  choice: most events have two to eight lines. */
#define SLAB_SIZES 16

struct depot;

/** Free blocks of one size in a thread: a list in use, and at most one full run beside it. */
struct slab_list {
	void *head, *full;
	uint32_t n; /* blocks on `head` */
};

struct slab {
	struct depot *depot;
	struct slab_list list[SLAB_SIZES];
};

/** Returns NULL if memory is short. */
struct depot *depot_new(void);
/** Free the depot with all its blocks. NULL is allowed. */
void depot_free(struct depot *d);

/** Take a block of `size` bytes, aligned to a cache line and not zeroed. Returns NULL if memory is
 *  short. Called by the thread that has `s`. */
void *slab_take(struct slab *s, size_t size);
/** Free a block that a thread of the same graph has taken. */
void slab_give(struct slab *s, void *block, size_t size);
/** Return all free blocks to the depot. Called when the thread leaves. */
void slab_leave(struct slab *s);

#endif
