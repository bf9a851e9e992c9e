/* SPDX-License-Identifier: MIT */
/*
 * What an I/O thread reuses: read buffers and requests, on free lists of its own.
 *
 * A read buffer is shared by a connection and the requests whose slices point into it, by a plain
 * count: only the I/O thread takes and drops references (a finished request comes home first). A
 * connection gives its buffer back while it is idle, so thousands of idle ones share a few.
 *
 * Buffers are small (3.5 KiB) until a head does not fit, then large (16 KiB, the longest head).
 * Small ones live in slabs, so the memory of a burst goes back. Bodies that are not in the buffer
 * with their head are allocated on their own, from a budget shared by all I/O threads of the
 * server.
 *
 * One thread per pool; `budget` is shared.
 */
#ifndef WEIR_HTTP_POOL_H
#define WEIR_HTTP_POOL_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/http_guard.h>

#include "http/request.h"
#include "http/slab.h"

/** A small buffer, its header included: with its connection a client that has sent half a request
 * costs less than 4 KiB. */
#define POOL_SMALL_PIECE 3584
/** Payload of a small buffer. */
#define POOL_SMALL_BYTES (POOL_SMALL_PIECE - sizeof(struct rbuf))
/** Payload of a large buffer: holds the longest head. */
#define POOL_LARGE_BYTES WEIR_HTTP_HEAD_MAX
/** Small buffers and requests kept for reuse; more go back. 1.8 MiB and 700 KiB: a guess. */
#define POOL_KEPT 512

struct http_server;

struct rbuf {
	struct slab *slab; /* NULL: large, from malloc */
	uint32_t refs;
	uint32_t size; /* bytes of data */
	char data[];
};

struct pool {
	struct slabs bufs;
	struct http_req *reqs;
	int n_reqs;              /* on the free list */
	_Atomic int64_t *budget; /* bytes of body memory left, shared */
	struct http_server *srv; /* whose metrics count bodies in parts; NULL: nobody's */
	uint64_t part_over;      /* bodies longer than that are not waited for; 0: all are */
	size_t part_bytes;       /* of a ring, at least WEIR_HTTP_HEAD_MAX; constant after start */
	_Atomic int64_t *used;   /* bytes that all pools have told, shared; memory.h */
	int64_t limit_bytes;     /* of them, in all */
	int64_t held_bytes;      /* by connections of this thread, see pool_hold */
	int64_t told_bytes;      /* of those */
	_Atomic int64_t alone;   /* `used` of a pool that shares nothing */
};

/** An empty pool over a shared `budget`, with memory of its own and no limit of it. It stays where it is. */
void pool_init(struct pool *p, _Atomic int64_t *budget);
/** What the pool holds is told to `used`, shared. Before first use. */
void pool_share(struct pool *p, _Atomic int64_t *used);
/** Free what is on the lists; buffers and requests that are out are lost to it. */
void pool_fini(struct pool *p);

/** A connection holds `bytes` more, or fewer. Buffers, requests and bodies count themselves. */
static inline void pool_hold(struct pool *p, int64_t bytes)
{
	p->held_bytes += bytes;
}

/** A buffer with one reference, NULL when out of memory or over the limit. */
struct rbuf *pool_buf(struct pool *p, uint32_t size);
static inline void pool_buf_ref(struct rbuf *b)
{
	b->refs++;
}
/** Drop a reference. */
void pool_buf_drop(struct pool *p, struct rbuf *b);

/** A request with no response and nothing owned, its event idle or finished. NULL: out of memory.
 */
struct http_req *pool_req(struct pool *p);
/** Release all that `r` owns, its response too, and take it back. */
void pool_req_drop(struct pool *p, struct http_req *r);

/** The answer of `r` waits to be written: its fields count, and its body if that is memory of its own (released by free; what
 *  stages share, as files in a cache, is bounded by them). Once. */
void pool_hold_answer(struct pool *p, struct http_req *r);

/** Make the body memory of `r` `size` bytes long, more than it has. 0, WEIR_ENOMEM, or
 * WEIR_EPRESSURE when the budget or the memory of all connections is used up. */
int pool_body_grow(struct pool *p, struct http_req *r, uint64_t size);
/** Free it, if there is any. */
void pool_body_drop(struct pool *p, struct http_req *r);

#endif
