/* SPDX-License-Identifier: MIT */
/*
 * Equal pieces of memory that go back to the operating system when a burst is over.
 *
 * Read buffers come and go by the thousand with slow clients; from malloc they would stay with the
 * process for good, held in place by the small things allocated between them. A slab is one mapping
 * of 64 pieces; when all of them are free, and others are, too, it is unmapped. Pages of a piece
 * that was never used are never touched. One thread.
 */
#ifndef WEIR_HTTP_SLAB_H
#define WEIR_HTTP_SLAB_H

#include <stddef.h>

/** Pieces of one mapping. */
#define SLAB_PIECES 64

struct slab;

struct slabs {
	size_t piece_bytes;   /* a multiple of 64 */
	struct slab *partial; /* slabs with free pieces, last used first */
	int n_free;           /* free pieces in all slabs, touched or not */
	int keep;             /* a slab is unmapped when more than this many others are free */
};

void slabs_init(struct slabs *s, size_t piece_bytes, int keep);
/** Unmap what is free; pieces that are out stay valid and are never unmapped. */
void slabs_fini(struct slabs *s);

/** A piece, not zeroed, NULL when out of memory. `*slab` names its slab, for slab_put. */
void *slab_get(struct slabs *s, struct slab **slab);
/** Give a piece back. */
void slab_put(struct slabs *s, struct slab *slab, void *piece);

#endif
