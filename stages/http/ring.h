/* SPDX-License-Identifier: MIT */
/*
 * A bounded buffer of bytes between one writer and one reader, who never touch the same bytes.
 *
 * The two counts only grow; `put - taken` bytes are in it. Whoever changes or reads a count holds the lock of the owner;
 * the bytes themselves are copied without it: what is free is the writer's, what is used the reader's.
 */
#ifndef WEIR_HTTP_RING_H
#define WEIR_HTTP_RING_H

#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>

struct ring {
	char *mem;           /* `size` bytes, NULL: there is no buffer */
	size_t size;         /* at least 1 when there is */
	uint64_t put, taken; /* bytes so far; taken <= put <= taken + size */
};

static inline size_t ring_used(const struct ring *r)
{
	return (size_t)(r->put - r->taken);
}

static inline size_t ring_free(const struct ring *r)
{
	return r->size - ring_used(r);
}

/** The first used bytes that lie in one piece. */
static inline struct weir_slice ring_first(const struct ring *r)
{
	size_t at = r->size ? (size_t)(r->taken % r->size) : 0, n = ring_used(r);

	return (struct weir_slice){r->mem + at, n < r->size - at ? n : r->size - at};
}

/** The used bytes behind ring_first(); none when it has them all. */
static inline struct weir_slice ring_second(const struct ring *r)
{
	return (struct weir_slice){r->mem, ring_used(r) - ring_first(r).n};
}

/** The free bytes that lie in one piece: where the next ones go. */
static inline size_t ring_space(const struct ring *r, char **at)
{
	size_t from = (size_t)(r->put % r->size), n = ring_free(r);

	*at = r->mem + from;
	return n < r->size - from ? n : r->size - from;
}

#endif
