/* SPDX-License-Identifier: MIT */
/*
 * Allocates pieces of memory of equal size. After a burst, the memory is returned to the operating
 * system.
 *
 * Slow clients cause thousands of read buffers to be allocated and freed. With malloc, the small
 * objects allocated between the buffers would prevent their memory from ever being returned. A slab
 * is one mapping of 64 pieces. When all of them are free, and enough pieces of other slabs are
 * free, it is unmapped. Pages of a piece that was never used are never touched. One thread.
 */
#ifndef WEIR_HTTP_SLAB_H
#define WEIR_HTTP_SLAB_H

#include <stddef.h>

/** Pieces per mapping. */
#define SLAB_PIECES 64

struct slab;

struct slabs {
	size_t piece_bytes;   /* a multiple of 64 */
	struct slab *partial; /* slabs with free pieces, last used first */
	int n_free;           /* free pieces in all slabs, touched or not */
	/* an unused slab is unmapped if more than this many pieces of other slabs are free */
	int keep;
};

void slabs_init(struct slabs *s, size_t piece_bytes, int keep);
/** Unmap unused slabs; slabs with pieces in use stay valid and are never unmapped. */
void slabs_fini(struct slabs *s);

/** Get a piece, which is not zeroed. Returns NULL if out of memory. `*slab` is set to its slab, for
 * slab_put. */
void *slab_get(struct slabs *s, struct slab **slab);
/** Return a piece to its slab. */
void slab_put(struct slabs *s, struct slab *slab, void *piece);

#endif
