/* SPDX-License-Identifier: MIT */
/* Memory of events; see slab.h. */
#include "event/slab.h"

#include <stdlib.h>

#include <weir/annotate.h>

#include "base/lock.h"

/* Bytes that are allocated at a time: a choice, 64 blocks of the largest size. */
#define CHUNK_BYTES ((size_t)65536)

/* A free block. The last two members are used only in the first block of a run in the depot. */
struct block {
	struct block *next, *next_run;
	uint32_t n;
};

struct chunk {
	WEIR_ALIGNED struct chunk *next;
};

struct depot {
	struct lock lock;
	struct block *runs[SLAB_SIZES] WEIR_GUARDED_BY(lock);
	struct chunk *chunks WEIR_GUARDED_BY(lock);
	char *at WEIR_GUARDED_BY(lock); /* unused rest of the last chunk */
	size_t left WEIR_GUARDED_BY(lock);
};

struct depot *depot_new(void)
{
	struct depot *d = calloc(1, sizeof(*d));

	if (d)
		lock_init(&d->lock);
	return d;
}

void depot_free(struct depot *d) WEIR_NO_THREAD_SAFETY
{
	if (!d)
		return;
	while (d->chunks) {
		struct chunk *c = d->chunks;
		d->chunks = c->next;
		free(c);
	}
	lock_fini(&d->lock);
	free(d);
}

static unsigned size_index(size_t size)
{
	return (unsigned)((size - 1) / WEIR_CACHE_LINE);
}

static bool is_large(size_t size)
{
	return SLAB_MALLOC || size > (size_t)SLAB_SIZES * WEIR_CACHE_LINE;
}

static void *allocate(size_t size)
{
	return aligned_alloc(
	    WEIR_CACHE_LINE, (size + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE);
}

static bool add_chunk(struct depot *d) WEIR_REQUIRES(&d->lock)
{
	struct chunk *c = allocate(CHUNK_BYTES);

	if (!c)
		return false;
	c->next = d->chunks;
	d->chunks = c;
	d->at = (char *)(c + 1);
	d->left = CHUNK_BYTES - sizeof(*c);
	return true;
}

/* Cut at most a run of blocks of one size from the last chunk. Returns their number. */
static uint32_t cut(struct depot *d, size_t bytes, struct block **list) WEIR_REQUIRES(&d->lock)
{
	uint32_t n = 0;

	if (d->left < bytes && !add_chunk(d))
		return 0;
	for (; n < SLAB_RUN && d->left >= bytes; n++) {
		struct block *b = (struct block *)(void *)d->at;
		d->at += bytes;
		d->left -= bytes;
		b->next = *list;
		*list = b;
	}
	return n;
}

/* Fill the empty list of size `i`. */
static void fill(struct slab *s, unsigned i)
{
	struct slab_list *l = &s->list[i];
	struct depot *d = s->depot;

	if (l->full) {
		l->head = l->full;
		l->full = NULL;
		l->n = SLAB_RUN;
		return;
	}
	lock_take(&d->lock);
	struct block *run = d->runs[i];
	if (run) {
		d->runs[i] = run->next_run;
		l->n = run->n;
	} else {
		l->n = cut(d, (i + 1) * (size_t)WEIR_CACHE_LINE, &run);
	}
	l->head = run;
	lock_release(&d->lock);
}

void *slab_take_slow(struct slab *s, size_t size)
{
	if (is_large(size))
		return allocate(size);
	struct slab_list *l = &s->list[size_index(size)];
	fill(s, size_index(size));
	struct block *b = l->head;
	if (!b)
		return NULL;
	l->head = b->next;
	l->n--;
	return b;
}

static void put_run(struct depot *d, unsigned i, struct block *run, uint32_t n)
{
	run->n = n;
	lock_take(&d->lock);
	run->next_run = d->runs[i];
	d->runs[i] = run;
	lock_release(&d->lock);
}

void slab_give_slow(struct slab *s, void *block, size_t size)
{
	if (is_large(size)) {
		free(block);
		return;
	}
	unsigned i = size_index(size);
	struct slab_list *l = &s->list[i];
	struct block *b = block;
	if (l->full)
		put_run(s->depot, i, l->full, SLAB_RUN);
	l->full = l->head;
	b->next = NULL;
	l->head = b;
	l->n = 1;
}

void slab_leave(struct slab *s)
{
	for (unsigned i = 0; i < SLAB_SIZES; i++) {
		struct slab_list *l = &s->list[i];
		if (l->full)
			put_run(s->depot, i, l->full, SLAB_RUN);
		if (l->head)
			put_run(s->depot, i, l->head, l->n);
		*l = (struct slab_list){0};
	}
}
