/* SPDX-License-Identifier: MIT */
/*
 * Emits requests from the stream of a connection into the graph.
 *
 * Requests of one iteration are passed on together, when the loop flushes. A refusal (bad request,
 * time-out, no memory) is queued behind earlier requests, so responses are always in order. Nothing
 * is parsed after a refusal.
 */
#include "http/conn/conn.h"

#include <string.h>

#include "http/conn/limit.h"
#include "http/message/forwarded.h"
#include "http/message/wire.h"

/* The requests of one connection may always hold PIPELINE_FREE bytes of memory, and beyond that
 * AMPLIFICATION times the bytes received for them. A struct http_req has 1,672 bytes, so at most 15
 * requests of 40 bytes, as wrk sends them, may be in flight. */
#define PIPELINE_FREE 16384
#define AMPLIFICATION 16

/* ---- what may be read and parsed ---- */

/* Whether one more request of the connection may be in the graph, within the limits of `pipeline`
 * and of memory (PIPELINE_FREE, AMPLIFICATION). */
static inline bool has_place(const struct conn *c)
{
	const uint32_t few = PIPELINE_FREE / sizeof(struct http_req);

	if (c->in_flight >= (uint32_t)c->io->conf.pipeline || (c->upgrade && c->in_flight > 0))
		return false;
	return WEIR_LIKELY(c->in_flight < few) || (c->in_flight + 1) * sizeof(struct http_req) <=
						      PIPELINE_FREE + AMPLIFICATION * c->wire_bytes;
}

/* Whether the stream, which is in the middle of `doing`, may go on to the next request. While the
 * connection is being handed over, the next request is for the new server. */
static inline bool takes_request(const struct conn *c, enum stream_doing doing)
{
	return c->input == INPUT_OPEN && has_place(c) &&
	       (doing == STREAM_IN_BODY || !io_is_leaving(c->io));
}

bool conn_wants_read(const struct conn *c)
{
	enum stream_doing doing = stream_doing(&c->stream);

	if (c->phase == CONN_LINGERING)
		return true;
	if (doing == STREAM_IN_PARTS)
		return conn_wants_part(c);
	return !c->io->net.pause.on && takes_request(c, doing);
}

/* Whether the buffered bytes may be parsed now. Those of a streamed body always may, since its
 * request is already in the graph. */
static bool may_parse(const struct conn *c)
{
	enum stream_doing doing = stream_doing(&c->stream);

	return doing == STREAM_IN_PARTS || (doing != STREAM_AT_REST && takes_request(c, doing));
}

/* Whether there are buffered bytes that must wait, because the next request may not be parsed now,
 * or because the transfer is full. */
static bool has_rest(const struct conn *c)
{
	enum stream_doing doing = stream_doing(&c->stream);

	if (doing == STREAM_IN_PARTS)
		return c->stream.end > c->stream.start && !conn_wants_part(c);
	return c->input == INPUT_OPEN && doing != STREAM_AT_REST &&
	       (c->io->net.pause.on || !takes_request(c, doing));
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

/* Read what the proxy that sent the request says of its client. */
WEIR_COLD static void take_client(struct http_io *io, struct http_req *r)
{
	struct forwarded f;

	forwarded_read(&r->pub, (enum forwarded_from)io->conf.client_from, &io->srv->net.trust, &f);
	if (f.known)
		r->client_n = (uint8_t)net_address_text(&f.client, r->client);
	r->from_forwarded = io->conf.client_from == FORWARDED_RFC;
	r->has_scheme = f.scheme.n > 0;
	r->is_secure = f.scheme.n == strlen("https");
	io->count[SERVER_FORWARDED_IGNORED] += f.malformed;
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
	c->upgrade = r->upgrade;
	r->wire_bytes += r->pub.body.n;
	c->wire_bytes += r->wire_bytes;
	if (conf->keep_alive_requests > 0 && c->requests >= conf->keep_alive_requests)
		end_keep_alive(io, r);
	if (!r->keep_alive || r->last)
		conn_stop_input(c);
	weir_event_init(ev, &weir_http_request_type, weir_loop_now_ns(io->net.loop));
	ev->trace_id = io->next_id++ & INT64_MAX; /* bit 63 is for shed ids */
	if (WEIR_UNLIKELY(c->net.client.trusted))
		take_client(io, r);
	if (conf->user[0])
		ev->session = wire_user(&r->pub, conf->user);
	if (wire_may_hint(&r->pub))
		take_hints(io, r);
	ev->class_id = weir_classify(io->net.stage, ev);
	bound_deadline(io, ev);
	if (WEIR_UNLIKELY(conf->pages.intercept))
		pages_watch(io, r);
	io->in_graph++;
	if (WEIR_UNLIKELY(r->transfer != NULL)) {
		r->known_transfer = r->transfer;
		conn_not_awaited(r);
		io->count[SERVER_PART_BODIES]++;
	}
	weir_emit(io->net.stage, 0, &ev);
}

/* Act on what stopped the parsing. */
static enum conn_next stopped(struct conn *c, enum stream_verdict v, struct http_req *r)
{
	switch (v) {
	case STREAM_REQUEST:
		if (c->stream.filling == r)
			stream_cut(&c->stream);
		pool_req_drop(&c->io->pool, r);
		return limit_refuse(c, LIMIT_MEMORY);
	case STREAM_REFUSED:
		return limit_refuse_parsed(c, c->stream.status, c->stream.why);
	case STREAM_TORN:
		if (!c->stream.filling)
			return CONN_END; /* the response has been sent already */
		limit_tear_parsed(c, c->stream.status);
		return CONN_WAIT;
	default:
		return CONN_WAIT;
	}
}

/* Parse and emit until the stream stops. *ended is set if a streamed or skipped body ended. */
static enum conn_next emit_all(struct conn *c, bool *ended)
{
	struct http_io *io = c->io;
	const struct http_conf *conf = &io->conf;

	while (may_parse(c)) {
		struct http_req *r;
		enum stream_verdict v = stream_next(
		    &c->stream, &io->pool, (uint64_t)conf->max_body_bytes, io->scratch.headers, &r);
		if (v == STREAM_REQUEST && WEIR_LIKELY(io->memory.step < MEMORY_REFUSE))
			emit(c, r);
		else if (v == STREAM_WHOLE)
			*ended = true;
		else
			return stopped(c, v, r);
	}
	return CONN_WAIT;
}

enum conn_next conn_parse(struct conn *c)
{
	bool ended = false;
	enum conn_next next;

	if (c->io->net.pause.on)
		return CONN_WAIT;
	next = emit_all(c, &ended);
	if (next != CONN_WAIT)
		return next;
	if (WEIR_UNLIKELY(stream_partial(&c->stream)) && !has_place(c))
		c->io->count[SERVER_PIPELINE_FULL] +=
		    c->input == INPUT_OPEN && stream_doing(&c->stream) != STREAM_IN_PARTS;
	if (stream_wants_continue(&c->stream) && conn_continue_due(c))
		return conn_continue(c);
	if (WEIR_UNLIKELY(ended) && c->io->net.drain.phase == NET_DRAINING)
		conn_make_ready(c); /* the connection may have to be closed now */
	return CONN_WAIT;
}

enum conn_next conn_parse_full(struct conn *c)
{
	enum stream_verdict v = stream_full(&c->stream, &c->io->pool);

	if (v != STREAM_MORE)
		return stopped(c, v, NULL);
	c->socket.unread = true;
	return conn_parse(c);
}

enum conn_next conn_parse_end(struct conn *c)
{
	/* parse again: the pipeline limit may allow more requests by now */
	enum conn_next next = conn_parse(c);

	if (next != CONN_WAIT)
		return next == CONN_END ? CONN_END_DONE : next;
	if (has_rest(c)) {
		/* the end will be read again once the buffered bytes are parsed */
		c->socket.unread = true;
		return CONN_WAIT;
	}
	c->input = INPUT_ENDED;
	conn_gone(c); /* with TLS, this is not always reported by epoll */
	if (stream_doing(&c->stream) == STREAM_IN_PARTS)
		conn_tear_part(c, WEIR_EGONE, 400, NULL);
	return c->in_flight == 0 ? CONN_END_DONE : CONN_WAIT;
}
