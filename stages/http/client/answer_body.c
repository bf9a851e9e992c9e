/* SPDX-License-Identifier: MIT */
/*
 * The body of an answer, from the origin to the client.
 *
 * A short body of known length is collected, so that the answer goes out with one write and the
 * connection to the origin is free as soon as possible. Others are sent in parts: what the client has no
 * room for stays in the buffer of the upstream, and the origin is not read until there is room.
 */
#include <stdlib.h>
#include <string.h>

#include "http/client/client_calls.h"
#include "http/conn/await.h"

/* Time in which a body may be slower than `min_rate`. */
#define SLOW_AFTER_NS 5000000000LL

/* Answer with the next `n` bytes of the buffer. */
static enum step respond_whole(struct exchange *x, size_t n)
{
	struct upstream *u = x->up;
	struct weir_slice body = {u->buffer + u->start, n};
	void (*release)(void *) = NULL;
	void *mem = NULL;

	u->start += (uint32_t)n;
	if (n >= CLIENT_LEND_MIN) {
		mem = upstream_lend(u);
		release = upstream_give_back;
	}
	if (n > 0 && !mem) {
		mem = malloc(n);
		if (!mem)
			return exchange_end(x, WEIR_ENOMEM, 0);
		release = free;
		body.p = memcpy(mem, body.p, n);
	}
	if (weir_http_respond(x->req, x->code, NULL, body, release, mem) != 0)
		return exchange_end(x, WEIR_EFAILED, 502);
	return exchange_done(x);
}

static enum step begin_parts(struct exchange *x, int64_t length)
{
	int rc = http_stream_begin_length(x->req, x->code, NULL, length);

	if (rc != 0)
		return exchange_end(x, rc == WEIR_EINVAL ? WEIR_EFAILED : rc, 502);
	x->begun = true;
	x->up->fill = CLIENT_PARTS_BYTES;
	return STEP_ON;
}

int64_t answer_slow_ns(const struct exchange *x)
{
	double rate = client_conf(x->cl)->min_rate;
	int64_t earned_ns;
	uint64_t got;

	if (x->phase != EXCHANGE_BODY || x->framing != FRAMING_LENGTH || rate <= 0 || x->blocked)
		return INT64_MAX;
	got = x->whole ? x->up->end - x->up->start : x->all - x->left;
	earned_ns = (int64_t)((double)got / rate * 1e9);
	return x->body_ns + (earned_ns > SLOW_AFTER_NS ? earned_ns : SLOW_AFTER_NS);
}

enum step answer_begin(struct exchange *x, const struct http_head *head)
{
	bool known = x->framing == FRAMING_LENGTH && head->content_length <= CLIENT_WHOLE_MAX;

	if (x->framing == FRAMING_NONE && x->req->method != WEIR_HTTP_HEAD)
		return respond_whole(x, 0); /* 204 and 304 */
	if (x->framing == FRAMING_NONE) {
		/* the length of what GET would bring; without one, none is written */
		enum step s = begin_parts(x, head->has_length ? (int64_t)head->content_length : -1);
		return s == STEP_ON ? exchange_done(x) : s;
	}
	if (!known)
		return begin_parts(
		    x, x->framing == FRAMING_LENGTH ? (int64_t)head->content_length : -1);
	x->whole = true;
	return STEP_ON;
}

/* Give bytes to the client. What it has no room for stays in x->pend. */
static enum step deliver(struct exchange *x, struct weir_slice data)
{
	x->pend = data;
	while (x->pend.n > 0) {
		int64_t n = weir_http_stream_write(x->req, x->pend);
		if (n < 0)
			return exchange_end(x, (int)n, 0);
		x->pend.p += n;
		x->pend.n -= (size_t)n;
		if (x->pend.n > 0 && !http_await_parts(x->req, WEIR_HTTP_ROOM)) {
			/* The origin does not work for this request any more: its time and its place in
			 * the width are not spent on a client that reads slowly. */
			weir_hold_served(x->cl->client->st, x->ev);
			x->blocked = true;
			x->blocked_ns = client_now_ns(x->cl);
			return STEP_ON;
		}
	}
	return STEP_ON;
}

static enum step torn(struct exchange *x)
{
	client_count(x->cl, CLIENT_BAD, 1);
	rows_failed(x->up->origin, "answer");
	pick_failed(x->cl, x->up->origin);
	return exchange_end(x, WEIR_EFAILED, 502);
}

/* Decode the next bytes of a chunked body. */
static enum step decode(struct exchange *x, bool *more)
{
	struct upstream *u = x->up;
	const char *at = u->buffer + u->start;
	struct weir_slice data;
	uint16_t before = x->chunk.trailer;
	enum chunk_verdict v = chunk_next(&x->chunk, &at, u->buffer + u->end, &data);

	if (WEIR_UNLIKELY(x->trailers && x->chunk.trailer > before)) {
		/* they are the last bytes; END_LF behind them does not count */
		size_t n = (size_t)(x->chunk.trailer - before);
		trailers_keep(x, at - n - (v == CHUNK_END), n);
	}
	u->start = (uint32_t)(at - u->buffer);
	switch (v) {
	case CHUNK_DATA:
		return deliver(x, data);
	case CHUNK_MORE:
		*more = true;
		return STEP_ON;
	case CHUNK_END:
		if (WEIR_UNLIKELY(x->n_trailer > 0))
			trailers_pass(x);
		return exchange_done(x);
	default:
		return torn(x);
	}
}

enum step answer_body(struct exchange *x, bool *more)
{
	struct upstream *u = x->up;
	size_t n = u->end - u->start;

	*more = false;
	if (x->blocked)
		x->body_ns += client_now_ns(x->cl) - x->blocked_ns;
	x->blocked = false;
	if (x->whole) {
		*more = n < x->left;
		return *more ? STEP_ON : respond_whole(x, (size_t)x->left);
	}
	if (x->pend.n > 0)
		return deliver(x, x->pend);
	if (x->framing == FRAMING_CHUNKED)
		return decode(x, more);
	if (x->framing == FRAMING_LENGTH && x->left == 0)
		return exchange_done(x);
	if (x->framing == FRAMING_LENGTH && n > x->left)
		n = (size_t)x->left;
	if (n == 0) {
		*more = true;
		return STEP_ON;
	}
	struct weir_slice data = {u->buffer + u->start, n};
	u->start += (uint32_t)n;
	x->left -= x->framing == FRAMING_LENGTH ? n : 0;
	return deliver(x, data);
}

enum step answer_closed(struct exchange *x, bool error)
{
	if (x->framing == FRAMING_CLOSE && !error)
		return exchange_done(x);
	return torn(x);
}
