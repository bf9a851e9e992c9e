/* SPDX-License-Identifier: MIT */
/* Allocates pieces of equal size from slabs; see slab.h. Under AddressSanitizer free pieces are
 * poisoned, so that a use after free is detected, as with malloc. */
#include "http/request/slab.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <weir/error.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(SLAB_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* A free piece. */
struct free_piece {
	struct free_piece *next;
};

/* The head of a mapping; the pieces follow. */
struct slab {
	struct slab *next, **prev; /* links of slabs->partial; prev is NULL if no piece is free */
	struct free_piece *list;   /* free pieces that were used before */
	int n_used; /* pieces allocated at least once; the pages of the others are untouched */
	int n_free;
};

#define HEAD_BYTES 64
_Static_assert(sizeof(struct slab) <= HEAD_BYTES, "pieces begin behind the head");

static size_t mapping_bytes(const struct slabs *s)
{
	return HEAD_BYTES + SLAB_PIECES * s->piece_bytes;
}

void slabs_init(struct slabs *s, size_t piece_bytes, int keep)
{
	WEIR_ASSERT(piece_bytes % 64 == 0);
	*s = (struct slabs){.piece_bytes = piece_bytes, .keep = keep};
}

static void link_slab(struct slabs *s, struct slab *b)
{
	b->next = s->partial;
	b->prev = &s->partial;
	if (b->next)
		b->next->prev = &b->next;
	s->partial = b;
}

static void unlink_slab(struct slab *b)
{
	*b->prev = b->next;
	if (b->next)
		b->next->prev = b->prev;
	b->prev = NULL;
}

static void unmap(struct slabs *s, struct slab *b)
{
	unlink_slab(b);
	s->n_free -= SLAB_PIECES;
	ASAN_UNPOISON_MEMORY_REGION(b, mapping_bytes(s));
	munmap(b, mapping_bytes(s));
}

void slabs_fini(struct slabs *s)
{
	struct slab *next;

	for (struct slab *b = s->partial; b; b = next) {
		next = b->next;
		if (b->n_free == SLAB_PIECES)
			unmap(s, b);
	}
}

static bool add_slab(struct slabs *s)
{
	void *mem = mmap(
	    NULL, mapping_bytes(s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct slab *b = mem;

	if (mem == MAP_FAILED)
		return false;
	*b = (struct slab){.n_free = SLAB_PIECES};
	ASAN_POISON_MEMORY_REGION((char *)b + HEAD_BYTES, SLAB_PIECES * s->piece_bytes);
	s->n_free += SLAB_PIECES;
	link_slab(s, b);
	return true;
}

void *slab_get(struct slabs *s, struct slab **slab)
{
	struct slab *b;
	void *piece;

	if (!s->partial && !add_slab(s))
		return NULL;
	b = s->partial;
	piece = b->list;
	if (!piece)
		piece = (char *)b + HEAD_BYTES + (size_t)b->n_used++ * s->piece_bytes;
	ASAN_UNPOISON_MEMORY_REGION(piece, s->piece_bytes);
	if (b->list)
		b->list = b->list->next;
	s->n_free--;
	if (--b->n_free == 0)
		unlink_slab(b);
	*slab = b;
	return piece;
}

void slab_put(struct slabs *s, struct slab *b, void *piece)
{
	struct free_piece *f = piece;

	f->next = b->list;
	b->list = f;
	ASAN_POISON_MEMORY_REGION(piece, s->piece_bytes);
	s->n_free++;
	if (b->n_free++ == 0)
		link_slab(s, b);
	if (b->n_free == SLAB_PIECES && s->n_free - SLAB_PIECES > s->keep)
		unmap(s, b);
}
