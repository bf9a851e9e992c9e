/* SPDX-License-Identifier: MIT */
/* Manages the free lists of an I/O thread and the body budget; see pool.h. */
#include "http/request/pool.h"

#include <stdlib.h>
#include <string.h>

#include <weir/annotate.h>

#include "http/request/transfer.h"
#include "http/request/waker.h"

/* Size of the first allocation for a body that does not arrive with its head; most such bodies are
 * small forms. */
#define BODY_FIRST_BYTES 4096

void pool_init(struct pool *p, _Atomic int64_t *budget)
{
	*p = (struct pool){.budget = budget, .used = &p->alone, .limit_bytes = INT64_MAX};
	slabs_init(&p->bufs, POOL_SMALL_PIECE, POOL_KEPT);
}

void pool_share(struct pool *p, _Atomic int64_t *used)
{
	p->used = used;
}

void pool_hold_answer(struct pool *p, struct http_req *r)
{
	const struct weir_http_response *res = &r->pub.res;
	uint64_t bytes = r->held_bytes + r->kept_bytes;

	if (res->release == free)
		bytes += res->body.n;
	if (r->pub.fields != r->pub.fields_inline)
		bytes += r->pub.fields_size;
	pool_hold(p, (int64_t)(bytes - r->held_bytes));
	r->held_bytes = bytes;
}

void pool_fini(struct pool *p)
{
	slabs_fini(&p->bufs);
	while (p->reqs) {
		struct http_req *r = p->reqs;
		p->reqs = r->next;
		free(r);
	}
	p->n_reqs = 0;
}

#define REQ_BYTES                                                                                  \
	((sizeof(struct http_req) + WEIR_CACHE_LINE - 1) / WEIR_CACHE_LINE * WEIR_CACHE_LINE)

bool pool_may_hold(const struct pool *p, int64_t more)
{
	int64_t told = atomic_load_explicit(p->used, memory_order_relaxed);

	return told + (p->held_bytes - p->told_bytes) <= p->limit_bytes - more;
}

struct rbuf *pool_buf(struct pool *p, uint32_t size)
{
	struct slab *slab = NULL;
	struct rbuf *b;

	if (WEIR_UNLIKELY(!pool_may_hold(p, (int64_t)(sizeof(*b) + size))))
		return NULL;
	b = size == POOL_SMALL_BYTES ? slab_get(&p->bufs, &slab) : malloc(sizeof(*b) + size);
	if (!b)
		return NULL;
	*b = (struct rbuf){.slab = slab, .refs = 1, .size = size};
	pool_hold(p, (int64_t)(sizeof(*b) + size));
	return b;
}

void pool_buf_drop(struct pool *p, struct rbuf *b)
{
	if (--b->refs > 0)
		return;
	pool_hold(p, -(int64_t)(sizeof(*b) + b->size));
	if (b->slab)
		slab_put(&p->bufs, b->slab, b);
	else
		free(b);
}

/* Prefetch the memory to which parsing the next request will write: the event, the public part, its
 * headers. */
static inline void fetch(const struct http_req *r)
{
	__builtin_prefetch(&r->next, 1);
	__builtin_prefetch(&r->pub.ev, 1);
	__builtin_prefetch(&r->pub.method, 1);
	__builtin_prefetch(&r->pub.headers, 1);
	__builtin_prefetch(&r->answered, 1);
	__builtin_prefetch(&r->headers[0], 1);
}

struct http_req *pool_req(struct pool *p)
{
	struct http_req *r = p->reqs;

	if (r) {
		p->reqs = r->next;
		if (p->reqs)
			fetch(p->reqs);
		p->n_reqs--;
		pool_hold(p, sizeof(*r));
		return r;
	}
	/* An event begins on its own cache line. */
	r = aligned_alloc(WEIR_CACHE_LINE, REQ_BYTES);
	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	pool_hold(p, sizeof(*r));
	r->pub.res.fd = -1;
	request_fields_reset(&r->pub);
	return r;
}

void pool_body_drop(struct pool *p, struct http_req *r)
{
	if (!r->body_mem)
		return;
	free(r->body_mem);
	r->body_mem = NULL;
	atomic_fetch_add_explicit(p->budget, (int64_t)r->body_size, memory_order_relaxed);
	pool_hold(p, -(int64_t)r->body_size);
	r->body_size = r->body_n = 0;
}

void pool_req_drop(struct pool *p, struct http_req *r)
{
	if (WEIR_UNLIKELY(r->transfer != NULL)) {
		transfer_drop(r->transfer);
		r->transfer = r->known_transfer = NULL;
		/* no one else owns the request now */
		r->streams = r->pub.res.streamed = false;
	}
	if (WEIR_UNLIKELY(atomic_load_explicit(&r->family, memory_order_relaxed) != NULL)) {
		weir_family_put(atomic_load_explicit(&r->family, memory_order_relaxed));
		atomic_store_explicit(&r->family, NULL, memory_order_relaxed);
	}
	if (WEIR_UNLIKELY(atomic_load_explicit(&r->waker, memory_order_relaxed) != NULL))
		waker_drop(r);
	weir_http_response_reset(&r->pub);
	pool_hold(p, -(int64_t)(sizeof(*r) + r->held_bytes));
	r->held_bytes = 0;
	r->wire_bytes = 0;
	r->pub.taps = NULL;
	WEIR_ASSERT(!r->filters);
	r->date_n = 0;
	r->lost = false;
	pool_body_drop(p, r);
	free(r->mem);
	r->mem = NULL;
	if (WEIR_UNLIKELY(r->kept != NULL))
		request_kept_drop(r);
	if (r->in)
		pool_buf_drop(p, r->in);
	r->in = NULL;
	r->conn = NULL;
	r->loop = NULL;
	r->client_n = 0;
	r->has_scheme = false;
	r->answered = r->refusal = r->expect_continue = r->keep_alive = r->last = false;
	r->body_taken = false;
	r->limit_status = 0;
	if (p->n_reqs >= POOL_KEPT) {
		free(r);
		return;
	}
	r->next = p->reqs;
	p->reqs = r;
	p->n_reqs++;
}

/* Deduct `bytes` from the budget, or nothing if less is left. Returns whether they were
 * deducted. */
static bool budget_take(struct pool *p, int64_t bytes)
{
	if (atomic_fetch_sub_explicit(p->budget, bytes, memory_order_relaxed) >= bytes)
		return true;
	atomic_fetch_add_explicit(p->budget, bytes, memory_order_relaxed);
	return false;
}

static int body_grow(struct pool *p, struct http_req *r, uint64_t size)
{
	int64_t more = (int64_t)(size - r->body_size);
	char *mem;

	if (!pool_may_hold(p, more) || !budget_take(p, more))
		return WEIR_EPRESSURE;
	mem = realloc(r->body_mem, size);
	if (!mem) {
		atomic_fetch_add_explicit(p->budget, more, memory_order_relaxed);
		return WEIR_ENOMEM;
	}
	r->body_mem = mem;
	r->body_size = size;
	pool_hold(p, more);
	return 0;
}

int pool_body_room(struct pool *p, struct http_req *r, uint64_t need, uint64_t limit)
{
	uint64_t size = r->body_size ? r->body_size * 2 : BODY_FIRST_BYTES;

	if (r->body_n + need <= r->body_size)
		return 0;
	if (size > limit)
		size = limit;
	if (size < r->body_n + need)
		size = r->body_n + need;
	return body_grow(p, r, size);
}

int pool_body_append(struct pool *p, struct http_req *r, struct weir_slice data, uint64_t limit)
{
	int rc = pool_body_room(p, r, data.n, limit);

	if (rc != 0)
		return rc;
	memcpy(r->body_mem + r->body_n, data.p, data.n);
	r->body_n += data.n;
	return 0;
}
