/* SPDX-License-Identifier: MIT */
/*
 * Writes responses: all that are next in order are sent in one call, in request order.
 *
 * The heads of a run of responses are composed one after the other into the I/O thread's buffer.
 * Small bodies are copied after their heads, large ones are referenced. One send or sendmsg writes
 * them all; sendfile writes bodies that are files. Only the first response can be partly sent. If a
 * short write leaves part of its head unsent, that part is stored in the connection; everything
 * after it is composed again later.
 */
#include "http/conn/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/clock.h>

#include "http/conn/wire_io.h"
#include "http/conn/write.h"
#include "http/request/sent.h"

/* Longest body that is copied after its head, which is cheaper than a second iovec (measured on
 * this class of machine: sendmsg takes about 60 ns more than send, and copying 1 KiB takes 20
 * ns). */
#define COPY_MAX 1024

/* Maximum number of file bytes sent per iteration and connection, so that one download does not
 * delay the others. 1 MiB is a guess. */
#define FILE_TURN_BYTES (1 << 20)

/* Limit of the unsent bytes that the kernel may hold for a connection. It is set once at least
 * UNSENT_MANY connections of an I/O thread have, or may have, unsent bytes. Each then gets an equal
 * share of UNSENT_ALL_KIB, between UNSENT_LEAST_KIB and UNSENT_MOST_KIB. With a lower limit, large
 * responses to many clients are sent in small, expensive steps: 1 MB responses to 1,000 clients
 * cost 1.5 times the CPU time with 8 KiB for each. A higher limit does not protect the kernel's
 * memory: for a client with a small window, whose bytes are in packets of 576 bytes, the kernel
 * uses 4 times as much memory. With 64 KiB each, 10,000 such clients used all the memory that Linux
 * allows TCP on a machine with 24 GB (bench/slow, read). */
#define UNSENT_ALL_KIB   16384
#define UNSENT_MOST_KIB  64
#define UNSENT_LEAST_KIB 4
#define UNSENT_MANY      64
/* If the kernel accepts more than this many KiB in one call, the connection is marked as swallowed,
 * since its client may be one of many that never read: 10,000 such responses take half a GB. 16 KiB
 * is a guess. */
#define UNSENT_MUCH_KIB 16

/* ---- gathering ---- */

static bool ends_at(const struct iovec *v, const char *p)
{
	return (const char *)v->iov_base + v->iov_len == p;
}

static void add_bytes(struct run *g, const char *p, size_t n)
{
	if (n == 0)
		return;
	g->bytes += n;
	if (g->n_iov > 0 && ends_at(&g->iov[g->n_iov - 1], p)) {
		g->iov[g->n_iov - 1].iov_len += n;
		return;
	}
	g->iov[g->n_iov++] = (struct iovec){.iov_base = (void *)(uintptr_t)p, .iov_len = n};
}

bool conn_closes_behind(const struct conn *c, const struct http_req *r)
{
	if (r->refusal || r->last || !r->keep_alive || r->pub.res.close)
		return true;
	/* If the server drains or is short of memory, this response is the last one, unless the
	 * client has begun another request, which it may finish. */
	if (r->next)
		return false;
	if (c->io->net.drain.phase == NET_RUNNING)
		return c->io->memory.step >= MEMORY_CLOSE && !stream_partial(&c->stream);
	if (c->io->net.drain.phase == NET_DRAINING && io_is_leaving(c->io))
		return false;
	return c->io->net.drain.phase == NET_CLOSED || !stream_partial(&c->stream);
}

static bool should_close(const struct conn *c, const struct http_req *r)
{
	if (WEIR_UNLIKELY(c->stream.filling == r) && !conn_part_kept(c))
		return true;
	return conn_closes_behind(c, r);
}

/* Compose the head of the response of `r`. Returns false if the buffer for heads is full. */
static bool add_head(struct conn *c, struct http_req *r, struct run *g, struct piece *p)
{
	struct http_io *io = c->io;
	char *out = io->scratch.out + g->out_n;
	size_t n;

	p->close = should_close(c, r);
	n = compose_head(io, r, p->close, out, sizeof(io->scratch.out) - g->out_n);
	if (n == 0)
		return false;
	p->head = out;
	p->head_n = p->bytes = n;
	g->out_n += (uint32_t)n;
	add_bytes(g, out, n);
	return true;
}

static void add_body(
    struct http_io *io, const struct http_req *r, struct run *g, struct piece *p, size_t offset)
{
	struct weir_slice body = r->pub.res.body;
	size_t left = body.n - offset;

	if (!compose_has_body(r))
		return;
	if (r->pub.res.fd >= 0 || r->pub.res.n_pieces > 0) {
		g->file = r->pub.res.length > 0;
		return;
	}
	if (left == 0) /* body.p may be NULL */
		return;
	p->bytes += left;
	if (body.n <= COPY_MAX && body.n <= sizeof(io->scratch.out) - g->out_n) {
		memcpy(io->scratch.out + g->out_n, body.p + offset, left);
		add_bytes(g, io->scratch.out + g->out_n, left);
		g->out_n += (uint32_t)left;
		return;
	}
	add_bytes(g, body.p + offset, left);
}

/* Add the rest of a response that was partly sent. */
static void add_part(struct conn *c, struct run *g, struct piece *p)
{
	p->close = c->part.close;
	p->head = c->part.head;
	p->head_n = p->bytes = c->part.head_n;
	add_bytes(g, p->head, p->head_n);
	add_body(c->io, c->first, g, p, (size_t)c->part.body_off);
}

/* Replace the response with a 500, because the fields that a stage has added exceed the buffer for
 * heads. */
static void too_large(struct http_req *r)
{
	weir_http_response_reset(&r->pub);
	weir_http_respond_status(&r->pub, 500);
	sent_again(r);
}

/* Add the response of `r` to the run. Returns false if the buffer for heads is full. */
static bool add_answer(struct conn *c, struct http_req *r, struct run *g)
{
	struct piece *p = &g->piece[g->n_pieces];

	*p = (struct piece){.r = r};
	if (r == c->first && c->part.begun) {
		add_part(c, g, p);
	} else {
		if (!add_head(c, r, g, p)) {
			if (g->n_pieces > 0 || g->shares)
				return false;
			too_large(r);
			add_head(c, r, g, p);
		}
		add_body(c->io, r, g, p, 0);
	}
	g->n_pieces++;
	return true;
}

void write_gather(struct conn *c, struct run *g)
{
	const struct piece *end = c->io->scratch.piece + SERVER_PIECES;

	for (struct http_req *r = c->first; r && r->answered && !r->streams; r = r->next) {
		if (g->piece + g->n_pieces == end || g->file || !add_answer(c, r, g))
			return;
		g->close = g->piece[g->n_pieces - 1].close;
		if (g->close) {
			g->client_done =
			    !r->refusal && !r->keep_alive && !stream_partial(&c->stream);
			return;
		}
	}
}

/* ---- recording what was sent ---- */

static void count_answer(struct http_io *io, int status)
{
	int class = status / 100;

	if (class >= 2 && class <= 5)
		io->count[SERVER_ANSWERS_2XX + class - 2]++;
}

/* Note how long the request took until now. Requests that the parser refused have no class. The clock
 * is read once for the responses of many connections that were sent together. The end of a stream may need
 * no send, so a time that an earlier iteration has read does not count. */
static void note_time(struct http_io *io, const struct http_req *r)
{
	int status = r->pub.res.status;
	enum weir_outcome outcome = weir_outcome_of(r->outcome);

	if (r->refusal)
		return;
	if (outcome == WEIR_OUTCOME_DONE && status >= 500)
		outcome = WEIR_OUTCOME_FAILED;
	if (io->sent_ns < weir_loop_now_ns(io->net.loop))
		io->sent_ns = weir_clock_ns(CLOCK_MONOTONIC);
	weir_answered(io->net.stage, &r->pub.ev, outcome, io->sent_ns - r->pub.ev.arrival_ns);
}

static void clear_part(struct conn *c)
{
	pool_hold(&c->io->pool, -(int64_t)c->part.head_n);
	free(c->part.head);
	c->part.head = NULL;
	c->part.head_n = 0;
	c->part.body_off = 0;
	c->part.begun = c->part.close = false;
}

static void drop_first(struct conn *c)
{
	struct http_req *r = c->first;

	if (c->part.begun)
		clear_part(c);
	c->wire_bytes -= r->wire_bytes;
	c->first = r->next;
	if (!c->first)
		c->last = &c->first;
	c->in_flight--;
	pool_req_drop(&c->io->pool, r);
}

void conn_pop(struct conn *c)
{
	struct http_req *r = c->first;

	if (WEIR_UNLIKELY(c->stream.filling == r) && !stream_leave(&c->stream))
		conn_stop_input(c);
	count_answer(c->io, r->pub.res.status);
	note_time(c->io, r);
	if (WEIR_UNLIKELY(r->sent != NULL))
		sent_tell(r, HTTP_SENT_WHOLE, 0);
	drop_first(c);
}

void conn_give_away(struct conn *c)
{
	if (c->first->sent)
		sent_tell(c->first, HTTP_SENT_HANDED, c->part.begun ? c->part.body_off : 0);
	drop_first(c);
}

/* Store the unsent rest of piece `p`, the response to the first request, of which `n` bytes have
 * been sent. Returns false if out of memory. */
static bool keep_part(struct conn *c, const struct piece *p, size_t n)
{
	char *rest = NULL;
	size_t left = n < p->head_n ? p->head_n - n : 0;
	int64_t body = n > p->head_n ? (int64_t)(n - p->head_n) : 0;

	if (left > 0) {
		rest = malloc(left);
		if (!rest)
			return false;
		memcpy(rest, p->head + n, left);
	}
	body += c->part.body_off;
	clear_part(c);
	c->part.head = rest;
	c->part.head_n = (uint32_t)left;
	pool_hold(&c->io->pool, (int64_t)left);
	c->part.body_off = body;
	c->part.begun = true;
	c->part.close = p->close;
	return true;
}

bool write_begin_part(struct conn *c)
{
	struct run g = write_alone(c->io);

	return c->part.begun || (add_answer(c, c->first, &g) && keep_part(c, g.piece, 0));
}

/* ---- sending ---- */

void conn_moved(struct conn *c, ssize_t n)
{
	c->io->count[SERVER_BYTES_OUT] += n;
	c->net.wait.progress_ns = weir_loop_now_ns(c->io->net.loop);
	c->net.wait.queued_bytes +=
	    n; /* counted as moved by look() in wait.c, when the client acknowledges them */
}

/* Record whether the kernel holds a large response that the client may not be reading, although the
 * connection appears to be idle. `much` means that a large response was just sent. */
static void note_swallowed(struct conn *c, bool much)
{
	c->io->memory.n_swallowed += much - c->socket.swallowed;
	c->socket.swallowed = much;
}

/* When many clients read their responses slowly, or may be doing so, keep the unsent bytes in our
 * memory rather than in the kernel's. The kernel would buffer megabytes for each and, when short of
 * memory for all sockets together, drop the packets of others. With few clients no limit is set:
 * the kernel's large buffers save a fifth of the CPU time of 1 MB responses. */
static void bound_unsent(struct conn *c, const struct run *g)
{
	int n = c->io->net.list[LIST_SLOW].n + c->io->memory.n_swallowed, kib, bytes;

	if (n < UNSENT_MANY || (g->bytes <= UNSENT_LEAST_KIB * 1024 && !g->file))
		return;
	kib = UNSENT_ALL_KIB / n;
	kib = kib > UNSENT_MOST_KIB    ? UNSENT_MOST_KIB
	      : kib < UNSENT_LEAST_KIB ? UNSENT_LEAST_KIB
				       : kib;
	if (c->socket.unsent_kib > 0 && c->socket.unsent_kib <= 2 * kib)
		return;
	c->socket.unsent_kib = (uint8_t)kib;
	bytes = kib * 1024;
	setsockopt(c->net.watch.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes));
}

/* Account for `n` sent bytes: drop each request whose piece is complete, and store the rest of the
 * first incomplete one. A request whose body is a file is never dropped here. */
static enum conn_sent account(struct conn *c, const struct run *g, size_t n)
{
	for (int i = 0; i < g->n_pieces; i++) {
		const struct piece *p = &g->piece[i];
		bool is_file = g->file && i == g->n_pieces - 1;
		if (n < p->bytes || is_file) {
			if (!keep_part(c, p, n))
				return SENT_BROKEN;
			return n < p->bytes ? SENT_BLOCKED : SENT;
		}
		n -= p->bytes;
		conn_pop(c);
	}
	return SENT;
}

void write_send(struct conn *c, struct run *g)
{
	bound_unsent(c, g);
	g->sent = g->bytes > 0 ? wire_send(c, g->iov, g->n_iov, g->file) : 0;
	if (WEIR_UNLIKELY(g->sent == -1))
		g->sent = -errno;
}

enum conn_sent write_book(struct conn *c, const struct run *g)
{
	if (WEIR_UNLIKELY(g->sent < 0))
		return g->sent == -EAGAIN ? SENT_BLOCKED : SENT_BROKEN;
	if (g->bytes > 0)
		conn_moved(c, g->sent);
	note_swallowed(c, g->sent > UNSENT_MUCH_KIB * 1024);
	return account(c, g, (size_t)g->sent);
}

/* Send the file that is the body of the first response. If the file has become shorter, the
 * response is aborted. */
static enum conn_sent send_file(struct conn *c)
{
	struct weir_http_response *res = &c->first->pub.res;
	off_t offset = res->offset;
	int64_t budget = FILE_TURN_BYTES;

	while (res->length > 0) {
		size_t want = (size_t)(res->length < budget ? res->length : budget);
		ssize_t n = want ? wire_sendfile(c, res->fd, &offset, want) : -1;
		if (want == 0 || (n == -1 && errno == EAGAIN))
			return SENT_BLOCKED;
		if (n <= 0)
			return SENT_BROKEN;
		conn_moved(c, n);
		res->offset += n;
		res->length -= n;
		budget -= n;
	}
	conn_pop(c);
	return SENT;
}

/* Send the body that is not in the iovecs of a run: a file, or pieces. */
static enum conn_sent send_rest(struct conn *c)
{
	const struct weir_http_response *res = &c->first->pub.res;
	bool much = res->length > UNSENT_MUCH_KIB * 1024;
	enum conn_sent rc = res->n_pieces > 0 ? conn_send_pieces(c) : send_file(c);

	if (rc == SENT)
		note_swallowed(c, much);
	return rc;
}

/* Send until no response is next in order, or the connection must be closed. `g` is the last run,
 * `rc` its result. */
static enum conn_sent send_answers(struct conn *c, struct run *g, enum conn_sent rc)
{
	if (rc == SENT && g->file)
		rc = send_rest(c);
	while (rc == SENT && c->first && (c->first->answered || c->first->streams) && !g->close) {
		*g = write_alone(c->io);
		if (WEIR_UNLIKELY(c->first->streams)) {
			rc = conn_write_parts(c, &g->close);
			continue;
		}
		write_gather(c, g);
		write_send(c, g);
		rc = write_book(c, g);
		if (rc == SENT && g->file)
			rc = send_rest(c);
	}
	return rc;
}

/* Whether the connection must be closed because the linger time of the drain is over. Its last
 * response may have been composed before the drain, without `Connection: close`. */
static bool is_over(const struct conn *c)
{
	const struct http_io *io = c->io;

	return io->net.drain.phase == NET_DRAINING && !io_is_leaving(io) && c->in_flight == 0 &&
	       !stream_partial(&c->stream) &&
	       weir_loop_now_ns(io->net.loop) >= atomic_load(&io->srv->net.linger_until_ns);
}

enum conn_next write_done(struct conn *c, struct run *g, enum conn_sent rc)
{
	switch (send_answers(c, g, rc)) {
	case SENT_BROKEN:
		return CONN_CLOSE;
	case SENT_BLOCKED:
		conn_block(c);
		return CONN_WAIT;
	default:
		if (g->close || WEIR_UNLIKELY(is_over(c)))
			return g->client_done ? CONN_END_DONE : conn_last(c);
		if (c->input != INPUT_OPEN && c->in_flight == 0)
			return conn_last(c);
		/* before parsing, so that the next request is the new server's */
		if (WEIR_UNLIKELY(io_is_leaving(c->io)) && conn_hand_over(c))
			return CONN_AS_IS;
		return CONN_PARSE;
	}
}

enum conn_next conn_write(struct conn *c)
{
	struct run g;

	g.file = g.close = g.client_done = false;
	if (c->phase >= CONN_LINGERING || c->socket.blocked)
		return CONN_AS_IS;
	if (WEIR_UNLIKELY(c->phase == CONN_ENDING))
		return conn_last(c);
	if (WEIR_UNLIKELY(c->socket.continue_left > 0)) {
		enum conn_next next = conn_continue_more(c);
		if (next != CONN_WAIT || c->socket.blocked)
			return next;
	}
	return write_done(c, &g, SENT);
}
