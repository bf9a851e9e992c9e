/* SPDX-License-Identifier: MIT */
/* Hands responses over between servers; see handed.h. */
#include "http/server/handed.h"

#include <stdlib.h>
#include <string.h>

#include "http/conn/conn.h"
#include "http/conn/write.h"
#include "http/request/sent.h"
#include "http/server/handed_file.h"
#include "net/tls/tls_conn.h"

struct handed {
	char *head; /* unsent bytes of the head, owned; may be NULL */
	uint32_t head_n;
	bool close; /* the connection is closed after the response */
	bool keep_alive;
	/* As in the response, but they describe only the part that is not sent yet. If that part is
	 * in memory, it is in `own`. */
	uint16_t status, n_pieces;
	struct handed_file *file; /* a reference; NULL if there is no file */
	int64_t offset, length;
	struct weir_slice body;
	struct weir_http_piece *piece;
	char *own;    /* memory of the unsent rest, owned; may be NULL */
	size_t own_n; /* size of `own` */
	/* the server whose copied_bytes includes own_n; NULL if none */
	struct http_server *copied_for;
};

/* ---- handing over ---- */

bool handed_fits(const struct conn *c)
{
	const struct http_req *r = c->first;

	return c->phase == CONN_OPEN && c->in_flight == 1 && r->answered && !r->streams &&
	       !r->transfer && c->socket.blocked && !c->net.refused &&
	       c->socket.continue_left == 0 && !c->stream.filling &&
	       c->stream.phase != STREAM_SKIP && !(c->net.tls && tls_is_away(c->net.tls));
}

/* Count `n` bytes as copied for `successor`, unless all copies for it, or the memory of its
 * connections, would then exceed half of its memory limit. This ensures that no client of the new
 * server is refused because of the copies. Copies are counted separately because several threads
 * may make copies at the same time, faster than the new server checks its memory. */
static bool may_copy(struct http_server *successor, int64_t n)
{
	int64_t most = atomic_load_explicit(&successor->memory_limit, memory_order_relaxed) / 2;
	int64_t used = atomic_load_explicit(&successor->memory_used, memory_order_relaxed);
	int64_t copied =
	    atomic_fetch_add_explicit(&successor->copied_bytes, n, memory_order_relaxed);

	if (copied + n <= most && used + n <= most)
		return true;
	atomic_fetch_sub_explicit(&successor->copied_bytes, n, memory_order_relaxed);
	return false;
}

/* Allocate `n` bytes for a copy of a stage's data, within limits: a single object that is sent to
 * many clients becomes one copy for each, although the connections held no memory for it before. */
static bool make_own(struct handed *h, const struct http_io *io, size_t n)
{
	if (!pool_may_hold(&io->pool, (int64_t)n + io->pool.limit_bytes / 2) ||
	    !may_copy((struct http_server *)io->net.handover.to, (int64_t)n))
		return false;
	h->copied_for = (struct http_server *)io->net.handover.to;
	h->own_n = n;
	h->own = malloc(n);
	return h->own;
}

/* Move or copy the rest of a body that is in memory. */
static bool take_body(struct handed *h, struct conn *c)
{
	struct weir_http_response *res = &c->first->pub.res;
	struct weir_slice rest = {
	    res->body.p + c->part.body_off, res->body.n - (size_t)c->part.body_off};

	if (rest.n == 0)
		return true;
	if (res->release == free && res->release_arg == res->body.p) {
		h->own = res->release_arg;
		h->own_n = res->body.n;
		h->body = rest;
		res->release = NULL;
		return true;
	}
	if (!make_own(h, c->io, rest.n))
		return false;
	memcpy(h->own, rest.p, rest.n);
	h->body = (struct weir_slice){h->own, rest.n};
	return true;
}

static size_t memory_of(const struct weir_http_response *res)
{
	size_t n = 0;

	for (int i = 0; i < res->n_pieces; i++)
		n += res->piece[i].p ? (size_t)res->piece[i].n : 0;
	return n;
}

/* Copy the array of the remaining pieces, followed by their bytes. */
static bool take_pieces(struct handed *h, struct conn *c)
{
	const struct weir_http_response *res = &c->first->pub.res;
	size_t list = res->n_pieces * sizeof(*res->piece);

	if (!make_own(h, c->io, list + memory_of(res)))
		return false;
	h->piece = (struct weir_http_piece *)(void *)h->own;
	h->n_pieces = res->n_pieces;
	memcpy(h->piece, res->piece, list);
	char *at = h->own + list;
	for (int i = 0; i < h->n_pieces; i++) {
		struct weir_http_piece *p = &h->piece[i];
		if (!p->p)
			continue;
		memcpy(at, p->p, (size_t)p->n);
		p->p = at;
		at += p->n;
	}
	return true;
}

static bool take_file(struct handed *h, const struct conn *c)
{
	const struct weir_http_response *res = &c->first->pub.res;

	if (res->fd < 0)
		return true;
	h->file = handed_file_get(&c->io->handed_files, res->fd);
	h->offset = res->offset;
	return h->file;
}

/* Transfer the rest of the body to `h`. If this fails, the connection still has all of it. */
static bool take_rest(struct handed *h, struct conn *c)
{
	const struct http_req *r = c->first;
	const struct weir_http_response *res = &r->pub.res;

	if (!compose_has_body(r))
		return true;
	h->length = res->length;
	if (!take_file(h, c))
		return false;
	if (res->n_pieces > 0)
		return take_pieces(h, c);
	return h->file || take_body(h, c);
}

struct handed *handed_take(struct conn *c)
{
	struct handed *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	if (!write_begin_part(c) || !take_rest(h, c)) {
		handed_free(h);
		return NULL;
	}
	h->status = c->first->pub.res.status;
	h->close = c->part.close;
	h->keep_alive = c->first->keep_alive;
	h->head = c->part.head;
	h->head_n = c->part.head_n;
	pool_hold(&c->io->pool, -(int64_t)c->part.head_n);
	c->part.head = NULL;
	c->part.head_n = 0;
	conn_give_away(c);
	return h;
}

static void uncount(struct handed *h)
{
	if (h->copied_for)
		atomic_fetch_sub_explicit(
		    &h->copied_for->copied_bytes, (int64_t)h->own_n, memory_order_relaxed);
	h->copied_for = NULL;
}

void handed_on(struct handed *h, struct http_server *successor)
{
	if (!h || !h->copied_for)
		return;
	uncount(h);
	h->copied_for = successor;
	atomic_fetch_add_explicit(
	    &successor->copied_bytes, (int64_t)h->own_n, memory_order_relaxed);
}

void handed_free(struct handed *h)
{
	if (!h)
		return;
	uncount(h);
	handed_file_put(h->file);
	free(h->own);
	free(h->head);
	free(h);
}

/* ---- taking over ---- */

struct http_req *handed_request(struct http_io *io)
{
	return pool_req(&io->pool);
}

static void release(void *arg)
{
	handed_free(arg);
}

void handed_begin(struct conn *c, struct http_req *r, struct handed *h)
{
	struct weir_http_response *res = &r->pub.res;

	r->pub.method = WEIR_HTTP_GET;
	r->pub.minor = 1;
	r->answered = true;
	r->keep_alive = h->keep_alive;
	*res = (struct weir_http_response){.status = h->status,
	    .fd = h->file ? handed_file_fd(h->file) : -1,
	    .offset = h->offset,
	    .length = h->length,
	    .body = h->body,
	    .piece = h->piece,
	    .n_pieces = h->n_pieces,
	    .release = release,
	    .release_arg = h};
	c->part.begun = true;
	c->part.close = h->close;
	c->part.head = h->head;
	c->part.head_n = h->head_n;
	h->head = NULL;
	pool_hold(&c->io->pool, (int64_t)c->part.head_n);
	r->held_bytes = h->own_n;
	pool_hold(&c->io->pool, (int64_t)r->held_bytes);
	conn_append(c, r);
	conn_make_ready(c);
}
