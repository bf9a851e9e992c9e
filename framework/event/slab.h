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

#include <weir/annotate.h>

/* Address sanitizer sees the use of a freed event only if each block is an allocation. */
#ifdef __SANITIZE_ADDRESS__
#define SLAB_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_MALLOC 1
#endif
#endif
#ifndef SLAB_MALLOC
#define SLAB_MALLOC 0
#endif

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

/** As slab_take and slab_give, when the list of the thread is empty or full, or the block is large. The
 *  memory is rounded up to whole cache lines. */
void *slab_take_slow(struct slab *s, size_t size);
void slab_give_slow(struct slab *s, void *block, size_t size);

/** Blocks in a run. 256 is a choice, the largest batch: a handler that frees one batch and makes the
 *  next needs no exchange with the depot, which takes a lock. A thread keeps at most 512 free blocks
 *  of a size. */
#define SLAB_RUN 256

/** Take a block of `size` bytes, aligned to a cache line and not zeroed, from the list of the thread that
 *  has `s` and calls. Returns NULL if it has none; then slab_take_slow may have one. */
static inline void *slab_take_fast(struct slab *s, size_t size)
{
	size_t i = (size - 1) / WEIR_CACHE_LINE;
	void *block = WEIR_LIKELY(i < SLAB_SIZES) ? s->list[i].head : NULL;

	if (WEIR_UNLIKELY(!block))
		return NULL;
	s->list[i].head = *(void **)block;
	s->list[i].n--;
	return block;
}

/** Likewise, from anywhere. Returns NULL if memory is short. */
static inline void *slab_take(struct slab *s, size_t size)
{
	void *block = slab_take_fast(s, size);

	return WEIR_LIKELY(block != NULL) ? block : slab_take_slow(s, size);
}

/** Free a block that a thread of the same graph has taken. */
static inline void slab_give(struct slab *s, void *block, size_t size)
{
	size_t i = (size - 1) / WEIR_CACHE_LINE;

	if (WEIR_UNLIKELY(SLAB_MALLOC || i >= SLAB_SIZES || s->list[i].n == SLAB_RUN)) {
		slab_give_slow(s, block, size);
		return;
	}
	*(void **)block = s->list[i].head;
	s->list[i].head = block;
	s->list[i].n++;
}

/** As slab_give, for `n` blocks of one size, which begin with a pointer to the next one. */
static inline void slab_give_list(struct slab *s, void *first, void *last, uint32_t n, size_t size)
{
	size_t i = (size - 1) / WEIR_CACHE_LINE;

	if (WEIR_UNLIKELY(SLAB_MALLOC || i >= SLAB_SIZES || s->list[i].n + n > SLAB_RUN)) {
		for (void *block = first, *next; n > 0; n--, block = next) {
			next = *(void **)block;
			slab_give(s, block, size);
		}
		return;
	}
	*(void **)last = s->list[i].head;
	s->list[i].head = first;
	s->list[i].n += n;
}

/** Return all free blocks to the depot. Called when the thread leaves. */
void slab_leave(struct slab *s);

#endif
