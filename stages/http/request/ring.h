/* SPDX-License-Identifier: MIT */
/*
 * A bounded buffer of bytes between one writer and one reader, which never touch the same bytes.
 *
 * The two counts only grow; `put - taken` bytes are in the ring. A count may be changed or read
 * only with the lock of the struct that contains the ring. The bytes themselves are copied without
 * the lock: free bytes belong to the writer, used ones to the reader.
 */
#ifndef WEIR_HTTP_RING_H
#define WEIR_HTTP_RING_H

#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>

struct ring {
	char *mem;           /* `size` bytes; NULL if there is no buffer */
	size_t size;         /* at least 1 if there is a buffer */
	uint64_t put, taken; /* bytes written and read so far; taken <= put <= taken + size */
};

static inline size_t ring_used(const struct ring *r)
{
	return (size_t)(r->put - r->taken);
}

static inline size_t ring_free(const struct ring *r)
{
	return r->size - ring_used(r);
}

/** Return the first contiguous used bytes. */
static inline struct weir_slice ring_first(const struct ring *r)
{
	size_t at = r->size ? (size_t)(r->taken % r->size) : 0, n = ring_used(r);

	return (struct weir_slice){r->mem + at, n < r->size - at ? n : r->size - at};
}

/** Return the used bytes after those of ring_first(); empty if ring_first() returns all of
 * them. */
static inline struct weir_slice ring_second(const struct ring *r)
{
	return (struct weir_slice){r->mem, ring_used(r) - ring_first(r).n};
}

/** Set *at to where the next bytes go, and return how many contiguous bytes are free there. */
static inline size_t ring_space(const struct ring *r, char **at)
{
	size_t from = (size_t)(r->put % r->size), n = ring_free(r);

	*at = r->mem + from;
	return n < r->size - from ? n : r->size - from;
}

#endif
