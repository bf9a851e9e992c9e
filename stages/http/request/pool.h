/* SPDX-License-Identifier: MIT */
/*
 * Memory that an I/O thread reuses: read buffers and requests, on its own free lists.
 *
 * A read buffer is shared by a connection and the requests whose slices point into it. The
 * reference count is not atomic: only the I/O thread takes and drops references (a finished request
 * returns to it first). A connection returns its buffer while it is idle, so thousands of idle
 * connections share a few buffers.
 *
 * Buffers are small (3.5 KiB) until a head does not fit, then large (16 KiB, the longest head).
 * Small ones are allocated from slabs, so that memory is returned to the system after a burst.
 * Bodies that are not in the buffer with their head are allocated separately, from a budget shared
 * by all I/O threads of the server.
 *
 * A pool belongs to one thread; only `budget` and `used` are shared.
 */
#ifndef WEIR_HTTP_POOL_H
#define WEIR_HTTP_POOL_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/http_guard.h>

#include <weir/knob.h>

#include "http/request/request.h"
#include "http/request/slab.h"

/** Size of a small buffer with its header: chosen so that a client that has sent half a request
 * costs less than 4 KiB, including its connection. */
#define POOL_SMALL_PIECE 3584
/** Payload of a small buffer. */
#define POOL_SMALL_BYTES (POOL_SMALL_PIECE - sizeof(struct rbuf))
/** Payload of a large buffer: holds the longest head. */
#define POOL_LARGE_BYTES WEIR_HTTP_HEAD_MAX
/** Maximum number of small buffers, and of requests, that are kept for reuse; the others are freed.
 * 512 (1.8 MiB of buffers and 700 KiB of requests) is a guess. */
#define POOL_KEPT 512

/** Memory held by the rings of transfers, now and at its peak. Any thread may change it. */
struct part_meter {
	struct weir_stage *stage; /* its metrics count streamed bodies */
	_Atomic int64_t bytes, peak;
};

struct rbuf {
	struct slab *slab; /* NULL if the buffer is large, from malloc */
	uint32_t refs;
	uint32_t size; /* bytes of data */
	char data[];
};

struct pool {
	struct slabs bufs;
	struct http_req *reqs;
	int n_reqs;               /* on the free list */
	_Atomic int64_t *budget;  /* bytes of body memory that may still be allocated, shared */
	struct part_meter *meter; /* NULL if nothing counts streamed bodies */
	const struct weir_strings *methods; /* served in addition to the known ones; may be NULL */
	uint64_t part_over; /* bodies longer than this are streamed; 0 means never */
	size_t part_bytes; /* size of a ring, at least WEIR_HTTP_HEAD_MAX; constant after startup */
	_Atomic int64_t *used; /* shared; bytes that all pools have reported (memory.h) */
	int64_t limit_bytes;   /* limit of *used */
	int64_t held_bytes;    /* bytes that connections of this thread hold (pool_hold) */
	int64_t told_bytes;    /* the part of held_bytes that *used includes */
	_Atomic int64_t alone; /* where `used` points until pool_share */
};

/** Initialize an empty pool over a shared `budget`, with its own, unlimited memory count. The pool
 * must not be moved afterwards. */
void pool_init(struct pool *p, _Atomic int64_t *budget);
/** Make the pool add the bytes that it holds to `used`, which all pools of a server share. Must be
 * called before the pool is used. */
void pool_share(struct pool *p, _Atomic int64_t *used);
/** Free everything on the free lists; buffers and requests still in use are leaked. */
void pool_fini(struct pool *p);

/** Add `bytes`, which may be negative, to the memory that connections hold. Buffers, requests and
 * bodies are counted by the functions below. */
static inline void pool_hold(struct pool *p, int64_t bytes)
{
	p->held_bytes += bytes;
}

/** Whether all connections together may hold `more` additional bytes. */
bool pool_may_hold(const struct pool *p, int64_t more);

/** Get a buffer for `size` bytes, with one reference. Returns NULL if out of memory or over the
 * limit. */
struct rbuf *pool_buf(struct pool *p, uint32_t size);
static inline void pool_buf_ref(struct rbuf *b)
{
	b->refs++;
}
/** Drop a reference. */
void pool_buf_drop(struct pool *p, struct rbuf *b);

/** Get a request from the free list or a new one. It has no response and owns no memory, and its
 * event is not in the graph. Returns NULL if out of memory. */
struct http_req *pool_req(struct pool *p);
/** Release all that `r` owns, including its response, and return it to the pool. */
void pool_req_drop(struct pool *p, struct http_req *r);

/** Count the memory of the response of `r` while it waits to be written: the fields, and the body
 * if its release function is free(). Other bodies, such as cached files, are bounded by the stages
 * that share them. Must be called once per request. */
void pool_hold_answer(struct pool *p, struct http_req *r);

/** Make space for `need` more bytes in the body memory of `r`, which may become `limit` bytes long.
 * If it must grow, its size is doubled. Returns 0, WEIR_ENOMEM, or WEIR_EPRESSURE if the budget or
 * the memory of all connections is used up. */
int pool_body_room(struct pool *p, struct http_req *r, uint64_t need, uint64_t limit);
/** Append `data` to the body memory; otherwise like pool_body_room. */
int pool_body_append(struct pool *p, struct http_req *r, struct weir_slice data, uint64_t limit);
/** Free the body memory, if there is any. */
void pool_body_drop(struct pool *p, struct http_req *r);

#endif
