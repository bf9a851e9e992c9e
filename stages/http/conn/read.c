/* SPDX-License-Identifier: MIT */
/*
 * Reads bytes from the socket into the stream, and emits requests from the stream into the graph.
 *
 * There is one read each time epoll reports a connection as readable; epoll reports it again when
 * there is more. Idle connections that became readable in one run of the event loop are read
 * together (read_turn.c), and parsed once all of them have been read (conn_make_ready, conn_write).
 * Reading, parsing and answering are thus three loops, during each of which the code that it needs,
 * including that of the kernel, stays in the processor's caches. Measured with hello inline at 64
 * connections: 12 % fewer cycles in user space, 2 % fewer in the kernel (perf stat, 12 rounds).
 *
 * The rest of a request that has begun is parsed immediately, since until then its time-out
 * continues to run, and a connection with part of a request may be evicted. Requests of one
 * iteration are passed on together, when the loop flushes. A refusal (bad request, time-out, no
 * memory) is queued behind earlier requests, so responses are always in order. Nothing is read
 * after a refusal.
 */
#include "http/conn/conn.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/limit.h"
#include "http/conn/wire_io.h"
#include "http/message/wire.h"
#include "http/request/refusal_log.h"

/* The requests of one connection may always hold PIPELINE_FREE bytes of memory, in which 16
 * requests of 40 bytes, as wrk sends them, fit (measured with sizeof). Beyond that they may hold at
 * most AMPLIFICATION times the bytes received (reliability.md, amplification). */
#define PIPELINE_FREE 16384
#define AMPLIFICATION 16

/* Whether one more request of the connection may be in the graph. A small request takes more memory
 * than its bytes, so the memory is also limited, to PIPELINE_FREE plus AMPLIFICATION times the
 * bytes that the client has sent. */
static inline bool has_place(const struct conn *c)
{
	const uint32_t few = PIPELINE_FREE / sizeof(struct http_req);

	if (c->in_flight >= (uint32_t)c->io->conf.pipeline)
		return false;
	return WEIR_LIKELY(c->in_flight < few) || (c->in_flight + 1) * sizeof(struct http_req) <=
						      PIPELINE_FREE + AMPLIFICATION * c->wire_bytes;
}

bool conn_wants_read(const struct conn *c)
{
	if (c->phase == CONN_LINGERING)
		return true;
	if (stream_in_parts(&c->stream))
		return conn_wants_part(c);
	if (io_is_leaving(c->io) && !c->stream.filling && c->stream.phase != STREAM_SKIP)
		return false; /* the next request is for the new server */
	return c->input == INPUT_OPEN && !c->io->net.pause.on && has_place(c);
}

/* Discard what a client sends after the last response. */
static void linger_read(struct conn *c)
{
	ssize_t n = TEMP_FAILURE_RETRY(
	    recv(c->net.watch.fd, c->io->scratch.out, sizeof(c->io->scratch.out), 0));

	if (n > 0) {
		c->io->count[SERVER_BYTES_IN] += n;
		c->socket.unread = c->socket.peer_done || (size_t)n == sizeof(c->io->scratch.out);
		conn_settle(c);
		return;
	}
	if (n == 0 || errno != EAGAIN)
		conn_close(c);
}

/* Whether there are buffered bytes that must wait, because the next request may not be parsed now
 * or the transfer is full. */
static bool has_rest(const struct conn *c)
{
	if (stream_in_parts(&c->stream))
		return c->stream.end > c->stream.start && !conn_wants_part(c);
	return c->input == INPUT_OPEN && stream_partial(&c->stream) &&
	       (c->io->net.pause.on || !has_place(c));
}

/* Handle the end of the client's bytes: complete requests are answered, a partial one is not. */
static void at_eof(struct conn *c)
{
	conn_parse(c); /* parse again: the pipeline limit may allow more requests by now */
	if (!conn_is_open(c))
		return;
	if (has_rest(c)) {
		/* the end will be read again once the buffered bytes are parsed */
		c->socket.unread = true;
		return;
	}
	c->input = INPUT_ENDED;
	if (stream_in_parts(&c->stream))
		conn_tear_part(c, WEIR_EGONE, 400);
	if (c->in_flight == 0)
		conn_end(c, true);
}

static void refuse_stream(struct conn *c)
{
	limit_refuse_parsed(c, c->stream.status, c->stream.why);
}

/* Defer parsing to conn_write. Bytes have arrived, so until then the connection must neither time
 * out nor be evicted as idle. */
static void parse_later(struct conn *c)
{
	c->net.wait.kind = WAIT_NONE;
	conn_list_leave(c);
	conn_make_ready(c);
}

/* Handle a stream_room that returned 0. If a body is being streamed, parse what is buffered first;
 * otherwise there is no memory. */
static void no_room(struct conn *c)
{
	if (stream_in_parts(&c->stream)) {
		c->socket.unread = true;
		conn_parse(c);
	} else {
		refuse_stream(c);
	}
	conn_settle(c);
}

void conn_took(struct conn *c, size_t n, ssize_t got)
{
	struct http_io *io = c->io;

	if (WEIR_UNLIKELY(n == 0)) {
		no_room(c);
		return;
	}
	if (got > 0) {
		io->count[SERVER_BYTES_IN] += got;
		/* while the client must read a response, bytes that it sends are not progress */
		if (c->net.wait.kind != WAIT_WRITE) {
			c->net.wait.progress_ns = weir_loop_now_ns(io->net.loop);
			c->net.wait.moved_bytes += got;
		}
		c->socket.unread = wire_left(c, n, (size_t)got);
		stream_got(&c->stream, (size_t)got);
		if (WEIR_LIKELY(c->net.wait.kind == WAIT_IDLE)) {
			parse_later(c);
			return;
		}
		conn_parse(c);
	} else if (got == 0) {
		at_eof(c);
	} else if (got != -EAGAIN) {
		conn_close(c);
	} else if (c->net.tls) {
		c->socket.unread = tls_left(c->net.tls);
	}
	conn_settle(c);
}

void conn_read(struct conn *c)
{
	char *room;
	size_t n;
	ssize_t got = 0;

	if (c->phase == CONN_LINGERING) {
		linger_read(c);
		return;
	}
	if (c->net.tls && tls_is_shaking(c->net.tls))
		return;
	n = stream_room(&c->stream, &c->io->pool, &room);
	if (n > 0)
		got = wire_recv(c, room, n);
	conn_took(c, n, got == -1 ? -errno : got);
}

/* ---- requests ---- */

void conn_append(struct conn *c, struct http_req *r)
{
	r->next = NULL;
	r->conn = c;
	r->loop = c->io->net.loop;
	*c->last = r;
	c->last = &r->next;
	c->in_flight++;
}

/* Read the client's hints: how long it will wait, whether this is a retry, and the trace to which
 * the request belongs. */
WEIR_COLD static void take_hints(struct http_io *io, struct http_req *r)
{
	const unsigned hints = wire_hints(&r->pub);
	struct weir_event *ev = &r->pub.ev;
	struct weir_trace trace;
	bool malformed = false;

	if ((hints & WIRE_LEFT) && io->conf.deadline != SERVER_DEADLINE_NONE) {
		int64_t left_ns = wire_left_ns(&r->pub, &malformed);
		if (left_ns >= 0)
			ev->deadline_ns = ev->arrival_ns + left_ns;
	}
	if ((hints & WIRE_ATTEMPT) && wire_attempt(&r->pub, &malformed) > 0)
		ev->session |= WEIR_SESSION_RETRY;
	if ((hints & WIRE_TRACE) && wire_trace(&r->pub, &trace, &malformed))
		weir_event_trace_set(ev, &trace);
	io->count[SERVER_HINTS_IGNORED] += malformed;
}

/* With `deadline: slo`, the deadline is at most the objective of the class. */
static void bound_deadline(const struct http_io *io, struct weir_event *ev)
{
	if (io->conf.deadline != SERVER_DEADLINE_SLO)
		return;
	int64_t slo_ns = weir_class_slo_ns(io->net.stage, ev->class_id);
	if (slo_ns < ev->deadline_ns - ev->arrival_ns)
		ev->deadline_ns = ev->arrival_ns + slo_ns;
}

static void end_keep_alive(struct http_io *io, struct http_req *r)
{
	r->last = true;
	io->count[SERVER_LAST_REQUESTS]++;
}

static void emit(struct conn *c, struct http_req *r)
{
	struct http_io *io = c->io;
	const struct http_conf *conf = &io->conf;
	struct weir_event *ev = &r->pub.ev;

	conn_append(c, r);
	/* a new request does not end the wait for the client to read a response */
	if (WEIR_LIKELY(c->net.wait.kind != WAIT_WRITE))
		c->net.wait.kind = WAIT_NONE;
	c->requests++;
	r->wire_bytes += r->pub.body.n;
	c->wire_bytes += r->wire_bytes;
	if (conf->keep_alive_requests > 0 && c->requests >= conf->keep_alive_requests)
		end_keep_alive(io, r);
	if (!r->keep_alive || r->last)
		conn_stop_input(c);
	weir_event_init(ev, &weir_http_request_type, weir_loop_now_ns(io->net.loop));
	ev->trace_id = io->next_id++ & INT64_MAX; /* bit 63 is for shed ids */
	if (conf->user[0])
		ev->session = wire_user(&r->pub, conf->user);
	if (wire_may_hint(&r->pub))
		take_hints(io, r);
	ev->class_id = weir_classify(io->net.stage, ev);
	bound_deadline(io, ev);
	io->in_graph++;
	if (WEIR_UNLIKELY(r->transfer != NULL)) {
		r->known_transfer = r->transfer;
		io->in_parts++;
		io->count[SERVER_PART_BODIES]++;
	}
	weir_emit(io->net.stage, 0, &ev);
}

/* Whether the buffered bytes may be parsed now. A streamed body may always be: its request is
 * already admitted. */
static bool may_parse(const struct conn *c)
{
	const struct stream *s = &c->stream;

	if (!stream_partial(s))
		return false;
	if (stream_in_parts(s))
		return true;
	return c->input == INPUT_OPEN && has_place(c) &&
	       (!io_is_leaving(c->io) || s->filling || s->phase == STREAM_SKIP);
}

void conn_parse(struct conn *c)
{
	struct http_io *io = c->io;
	const struct http_conf *conf = &io->conf;
	bool ended = false;

	if (io->net.pause.on)
		return;
	while (may_parse(c)) {
		struct http_req *r;
		enum stream_verdict v = stream_next(
		    &c->stream, &io->pool, (uint64_t)conf->max_body_bytes, io->scratch.headers, &r);
		if (v == STREAM_REQUEST && WEIR_LIKELY(io->memory.step < MEMORY_REFUSE)) {
			emit(c, r);
			continue;
		}
		if (v == STREAM_WHOLE) {
			ended = true;
			continue;
		}
		if (v == STREAM_REQUEST) {
			if (c->stream.filling == r)
				stream_cut(&c->stream);
			pool_req_drop(&io->pool, r);
			limit_refuse(c, LIMIT_MEMORY);
		}
		if (v == STREAM_REFUSED)
			refuse_stream(c);
		else if (v == STREAM_TORN && c->stream.filling)
			conn_tear_part(c, WEIR_EINVAL, c->stream.status);
		else if (v == STREAM_TORN)
			conn_end(c, false); /* the response has been sent already */
		break;
	}
	if (WEIR_UNLIKELY(stream_partial(&c->stream)) && !has_place(c))
		io->count[SERVER_PIPELINE_FULL] +=
		    c->input == INPUT_OPEN && !stream_in_parts(&c->stream);
	if (stream_wants_continue(&c->stream)) {
		if (c->stream.filling->transfer ? conn_continue_due(c) : c->in_flight == 0)
			conn_continue(c);
	} else if (WEIR_UNLIKELY(ended) && io_is_leaving(io)) {
		conn_hand_over(c); /* only the rest of a body kept the connection here */
	} else if (WEIR_UNLIKELY(ended) && io->net.drain.phase == NET_DRAINING) {
		conn_make_ready(c); /* the connection may have to be closed now */
	}
}

/* ---- refusals ---- */

static void refusal_text(struct http_req *r, int status, const char *why)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "%d %s: %s\n", status, weir_http_reason(status), why);

	if (weir_http_respond_copy(&r->pub, status, "text/plain; charset=utf-8",
		(struct weir_slice){text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1}) !=
	    0)
		weir_http_respond_status(&r->pub, status); /* no memory for `why` */
	if (status != 503)
		return;
	snprintf(text, sizeof(text), "%d", conn_retry_after_s(r->conn));
	weir_http_add_field(&r->pub, "Retry-After", text);
}

/* Refuse a request without queueing the response, because there is no memory for it. A short
 * response is sent directly, unless another one is queued before it. */
static void refuse_in_short(struct conn *c, int status)
{
	char text[160];
	int n = snprintf(text, sizeof(text),
	    "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status,
	    weir_http_reason(status));
	struct iovec iov = {.iov_base = text, .iov_len = (size_t)n};

	if (!c->first && !c->socket.blocked && wire_send(c, &iov, 1, false) == n)
		conn_end(c, false);
	else
		conn_close(c);
}

void conn_refuse(struct conn *c, int status, const char *why)
{
	/* a response would need a whole handshake first */
	bool mute = c->net.tls && tls_is_shaking(c->net.tls);
	struct http_req *r = mute ? NULL : pool_req(&c->io->pool);

	conn_stop_input(c);
	c->io->count[SERVER_BAD_REQUESTS] += status != 503;
	refusal_log(&c->io->refusals, c->io->net.stage, weir_loop_now_ns(c->io->net.loop),
	    c->net.client.address, status, why);
	if (mute) {
		conn_close(c);
		return;
	}
	if (!r) {
		refuse_in_short(c, status);
		return;
	}
	r->pub.method = stream_asks_head(&c->stream) ? WEIR_HTTP_HEAD : WEIR_HTTP_GET;
	r->pub.minor = 1;
	r->refusal = r->answered = true;
	conn_append(c, r);
	refusal_text(r, status, why);
	conn_make_ready(c);
}
