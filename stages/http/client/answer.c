/* SPDX-License-Identifier: MIT */
/*
 * The head of an answer, and how its body is framed.
 *
 * The guard of http.server judges heads of answers by the same rules as those of requests, and llhttp
 * must agree. What it refuses is answered with 502, and the connection is closed. The fields of a good
 * head are passed on, but for those that concern one hop and those that http.server writes itself.
 */
#include <string.h>
#include <strings.h>

#include "http/client/client_calls.h"
#include "http/conn/await.h"
#include "http/message/parse.h"
#include "http/message/put.h"
#include "http/request/filter.h"
#include "http/request/request.h"

bool client_lists(struct weir_slice value, struct weir_slice token)
{
	size_t i = 0;

	while (i < value.n) {
		size_t n = guard_span(value.p + i, value.n - i, GUARD_TOKEN);
		if (n == token.n && strncasecmp(value.p + i, token.p, n) == 0)
			return true;
		i += n > 0 ? n : 1;
	}
	return false;
}

/* Fields that are not passed on: they concern one hop, or http.server writes them. */
static bool is_dropped(struct weir_slice name)
{
#define NAME(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
	static const struct weir_slice names[] = {NAME("connection"), NAME("content-length"),
	    NAME("date"), NAME("keep-alive"), NAME("proxy-authenticate"), NAME("proxy-connection"),
	    NAME("server"), NAME("te"), NAME("trailer"), NAME("transfer-encoding"),
	    NAME("upgrade")};
#undef NAME

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (name.n == names[i].n && strncasecmp(name.p, names[i].p, name.n) == 0)
			return true;
	return false;
}

static bool is_named(const struct http_head *head, struct weir_slice name)
{
	for (int i = 0; i < head->n_headers; i++)
		if (weir_slice_is(head->headers[i].name, "connection") &&
		    client_lists(head->headers[i].value, name))
			return true;
	return false;
}

/* For a cache, which computes the age of the answer. */
static void keep_date(struct http_req *r, struct weir_slice date)
{
	r->date_n = date.n <= sizeof(r->date) ? (uint8_t)date.n : 0;
	memcpy(r->date, date.p, r->date_n);
}

bool answer_passes(const struct http_head *head, struct weir_slice name)
{
	return !is_dropped(name) && !is_named(head, name);
}

/* Copy the fields to the answer. Returns false if out of memory, or if they are too long. */
static bool pass_fields(struct exchange *x, const struct http_head *head)
{
	struct weir_http_request *req = x->req;
	const char *via = x->cl->client->via;
	size_t n = 8 + strlen(via);
	char *at;

	for (int i = 0; i < head->n_headers; i++)
		n += head->headers[i].name.n + head->headers[i].value.n + 4;
	at = request_fields_room(req, n);
	if (!at)
		return false;
	for (int i = 0; i < head->n_headers; i++) {
		const struct weir_http_header *h = &head->headers[i];
		if (weir_slice_is(h->name, "date"))
			keep_date((struct http_req *)req, h->value);
		if (!answer_passes(head, h->name) &&
		    !(x->trailers && weir_slice_is(h->name, "trailer")))
			continue;
		at = PUT(put(at, h->name.p, h->name.n), ": ");
		at = h->value.n > 0 ? put(at, h->value.p, h->value.n) : at;
		at = PUT(at, "\r\n");
	}
	at = put(PUT(at, "Via: "), via, strlen(via));
	request_fields_to(req, PUT(at, "\r\n"));
	return true;
}

/* Whether the request logs the client in with NTLM or Negotiate. The origin may then take all that
 * comes over the connection for this client's. */
static bool binds_connection(const struct weir_http_request *req)
{
	for (int i = 0; i < req->n_headers; i++) {
		struct weir_slice a = req->headers[i].value;
		if (weir_slice_is(req->headers[i].name, "authorization") &&
		    ((a.n >= 4 && strncasecmp(a.p, "NTLM", 4) == 0) ||
			(a.n >= 9 && strncasecmp(a.p, "Negotiate", 9) == 0)))
			return true;
	}
	return false;
}

/* RFC 9112, 6.3. */
static void frame(struct exchange *x, const struct http_head *head)
{
	bool bodiless = x->req->method == WEIR_HTTP_HEAD || head->code == 204 || head->code == 304;

	x->code = head->code;
	x->keep = head->keep_alive && !binds_connection(x->req);
	x->left = x->all = head->has_length ? head->content_length : 0;
	x->body_ns = client_now_ns(x->cl);
	if (bodiless)
		x->framing = FRAMING_NONE;
	else if (head->chunked)
		x->framing = FRAMING_CHUNKED;
	else
		x->framing = head->has_length ? FRAMING_LENGTH : FRAMING_CLOSE;
	if (x->framing == FRAMING_CHUNKED)
		chunk_init(&x->chunk, INT64_MAX);
	x->keep &= x->framing != FRAMING_CLOSE;
	x->phase = EXCHANGE_BODY;
}

/* Take the head from the buffer. *more is set if bytes are missing. */
static enum step head(struct exchange *x, bool *more)
{
	struct upstream *u = x->up;
	struct http_head h = {.headers = x->cl->headers};
	enum guard_verdict v = GUARD_MORE;

	*more = false;
	if (u->end > u->start)
		v = parse_answer(u->buffer + u->start, u->end - u->start, &h);
	if (v == GUARD_REFUSED)
		return exchange_failed(x, FAILURE_BAD);
	if (v == GUARD_MORE) {
		*more = true;
		return STEP_ON;
	}
	u->start += (uint32_t)h.n;
	if (h.code == 101)
		return tunnel_begin(x, &h);
	if (h.code < 200)
		return ++x->interim > CLIENT_INTERIM_MAX ? exchange_failed(x, FAILURE_BAD)
							 : STEP_ON;
	if (tries_status(x, h.code))
		return STEP_OVER;
	rows_first_byte(u->origin, client_now_ns(x->cl) - x->since_ns);
	if (x->trial) /* the origin answers; the body may last for hours */
		pick_succeeded(x->cl, u->origin);
	frame(x, &h);
	if (h.code == 503) /* the origin is overloaded: the width is lowered */
		weir_hold_refused(x->cl->client->st, x->ev);
	if (!pass_fields(x, &h)) {
		x->why =
		    "fields"; /* they are as long as those of http.server may be, and Via is added */
		client_count(x->cl, CLIENT_BAD, 1);
		return exchange_end(x, WEIR_EFAILED, 502);
	}
	return answer_begin(x, &h);
}

/* Make room for the next read. The buffer is full only if it holds bytes of a body that were used. */
static void make_room(struct upstream *u)
{
	if (u->start == 0 || u->end < u->fill)
		return;
	memmove(u->buffer, u->buffer + u->start, u->end - u->start);
	u->end -= u->start;
	u->start = 0;
}

static enum step closed(struct exchange *x, bool error)
{
	if (x->phase == EXCHANGE_BODY)
		return answer_closed(x, error);
	return exchange_failed(x, x->heard ? FAILURE_BAD : FAILURE_EARLY);
}

enum step answer_run(struct exchange *x)
{
	int64_t most = CLIENT_TURN_BYTES;

	for (;;) {
		bool more;
		enum step s = x->phase == EXCHANGE_HEAD ? head(x, &more) : answer_body(x, &more);
		if (s == STEP_OVER || x->blocked)
			return s;
		if (!more)
			continue;
		if (most <= 0) {
			upstream_rearm(x->up);
			return STEP_ON;
		}
		make_room(x->up);
		int64_t n = upstream_read(x->up);
		if (n == 0 && x->phase == EXCHANGE_BODY && !x->timed) {
			x->timed = true;
			exchange_time(x); /* `min_rate` may end the wait before `timeout` */
		}
		if (n == 0) {
			http_stream_flush(x->req); /* the origin pauses */
			return STEP_ON;
		}
		if (n < 0)
			return closed(x, n == -2);
		x->heard = true;
		if (x->phase == EXCHANGE_BODY)
			x->since_ns = client_now_ns(x->cl);
		most -= n;
	}
}
