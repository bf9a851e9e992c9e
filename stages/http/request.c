/* SPDX-License-Identifier: MIT */
/*
 * Requests as events: their fields for classes and keys, and the way home when they are finished.
 *
 * The finish callback runs in whatever thread ends the event. It completes the answer (default
 * answer, taps) there and hands the request to its connection's I/O thread, which alone writes and
 * frees.
 */
#include "http/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/trace.h>

#include "http/conn.h"
#include "http/parse.h"
#include "http/transfer.h"
#include "http/tls_conn.h"
#include "http/wire.h"

/* ---- fields of the event type ---- */

static const struct weir_http_request *pub_of(const struct weir_event *ev)
{
	WEIR_ASSERT(ev->type == &weir_http_request_type);
	return (const struct weir_http_request *)ev;
}

static const struct conn *conn_of(const struct weir_event *ev)
{
	return ((const struct http_req *)pub_of(ev))->conn;
}

static struct weir_slice get_path(const struct weir_event *ev, const char *arg)
{
	(void)arg;
	return pub_of(ev)->path;
}

static struct weir_slice get_method(const struct weir_event *ev, const char *arg)
{
	(void)arg;
	return pub_of(ev)->method_text;
}

static struct weir_slice get_host(const struct weir_event *ev, const char *arg)
{
	(void)arg;
	return pub_of(ev)->host;
}

static struct weir_slice get_target(const struct weir_event *ev, const char *arg)
{
	(void)arg;
	return pub_of(ev)->target;
}

static struct weir_slice get_address(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c ? (struct weir_slice){c->peer, c->peer_n} : (struct weir_slice){NULL, 0};
}

static struct weir_slice get_connection(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c ? (struct weir_slice){c->id, sizeof(c->id)} : (struct weir_slice){NULL, 0};
}

static struct weir_slice get_header(const struct weir_event *ev, const char *arg)
{
	return weir_http_header(pub_of(ev), arg);
}

static struct weir_slice slice_of(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

static struct weir_slice get_scheme(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return slice_of(c && c->tls ? "https" : "http");
}

static struct weir_slice get_tls(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c && c->tls ? slice_of(tls_version(c->tls)) : (struct weir_slice){NULL, 0};
}

static struct weir_slice get_sni(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c && c->tls ? slice_of(tls_sni(c->tls)) : (struct weir_slice){NULL, 0};
}

static const struct weir_field fields[] = {
    {"path", get_path, "target up to '?', as sent"},
    {"method", get_method, "method, as sent"},
    {"host", get_host, "host the request is for, as sent"},
    {"target", get_target, "path and query, as sent"},
    {"address", get_address, "address of the client, without its port"},
    {"connection", get_connection, "the connection: 8 bytes, unique in this process"},
    {"scheme", get_scheme, "https with TLS, else http"},
    {"tls", get_tls, "version of TLS, as TLSv1.3; none without"},
    {"sni", get_sni, "name that the client asked for when it began with TLS"},
    {"header.", get_header, "value of the first header field of that name"},
    {NULL, NULL, NULL},
};

/* ---- the way home ---- */

/* 503: come again in a while, `known_ns` from now if that is known. Clients without a name get spread over time when
 * `spread` is set; the turns of users are spread already. */
WEIR_COLD static void busy_answer(struct http_req *r, int64_t known_ns, bool spread)
{
	const struct weir_event *ev = &r->pub.ev;
	char text[16];

	weir_http_response_reset(&r->pub);
	weir_http_respond_status(&r->pub, 503);
	if (!r->loop)
		return;
	snprintf(text, sizeof(text), "%d",
	    wire_retry_after_s(known_ns, conn_retry_after_s(r->conn), spread, ev->trace_id));
	weir_http_add_field(&r->pub, "Retry-After", text);
}

/* The id of a trace that others know of: the client named it, or it is exported. "" and false: there is none. */
static bool trace_text(const struct weir_event *ev, char buf[WEIR_TRACE_ID_BYTES])
{
	struct weir_trace trace = {0};

	buf[0] = '\0';
	if (weir_event_traced(ev, &trace) && (trace.parent || trace.sampled))
		weir_trace_id_print(&trace, buf);
	return buf[0];
}

/* Who refused and why, in words and as the id that `weir why --shed` explains. */
WEIR_COLD static void name_shed(struct http_req *r, int status)
{
	const struct weir_event *ev = &r->pub.ev;
	const struct weir_stage *st;
	char text[256], id[WEIR_SHED_ID_BYTES], trace[WEIR_TRACE_ID_BYTES];

	if (!r->loop)
		return;
	st = weir_loop_stage(r->loop);
	snprintf(text, sizeof(text), "stage=%s; reason=%s; class=%s%s%s",
	    weir_stage_peer_name(st, ev->stage), weir_error_word(status),
	    weir_class_name(st, ev->class_id), trace_text(ev, trace) ? "; trace=" : "", trace);
	weir_http_add_field(&r->pub, "X-Weir-Shed", text);
	if (weir_shed_id(ev, id))
		weir_http_add_field(&r->pub, "X-Weir-Shed-Id", id);
}

/* A failure is looked for by its trace. */
WEIR_COLD static void name_trace(struct http_req *r)
{
	char text[WEIR_TRACE_ID_BYTES];

	if (trace_text(&r->pub.ev, text))
		weir_http_add_field(&r->pub, "X-Weir-Trace", text);
}

static void default_answer(struct http_req *r, int status)
{
	switch (weir_outcome_of(status)) {
	case WEIR_OUTCOME_DONE:
		if (r->pub.res.status == 0)
			weir_http_respond_status(&r->pub, 204);
		return;
	case WEIR_OUTCOME_SHED:
		busy_answer(r, weir_retry_after_ns(&r->pub.ev),
		    (r->pub.ev.session & ~WEIR_SESSION_RETRY) == 0);
		name_shed(r, status);
		return;
	default:
		if (status == WEIR_ECLOSED) {
			busy_answer(r, 0, false);
		} else {
			int torn = r->transfer ? transfer_torn_status(r->transfer) : 0;
			weir_http_response_reset(&r->pub);
			weir_http_respond_status(&r->pub, torn ? torn : 500);
		}
		name_trace(r);
	}
}

static void run_taps(struct weir_http_request *req, int status)
{
	while (req->taps) {
		struct weir_http_tap *tap = req->taps;
		req->taps = tap->next;
		tap->fn(tap, req, status);
	}
}

static void finish(struct weir_event *ev, int status)
{
	struct http_req *r = weir_event_cast(ev, &weir_http_request_type);

	r->outcome = (int16_t)status;
	/* What was begun in parts only ends. */
	if (WEIR_LIKELY(!r->transfer) || !transfer_finished(r->transfer, status))
		default_answer(r, status);
	run_taps(&r->pub, status);
	if (!r->loop)
		return;
	if (weir_loop_is_mine(r->loop))
		conn_answered(r);
	else
		weir_loop_send(r->loop, ev);
}

static void describe(const struct weir_event *ev, char *buf, size_t size)
{
	const struct weir_http_request *req = pub_of(ev);

	snprintf(buf, size, "%.*s %.*s", (int)req->method_text.n, req->method_text.p,
	    req->target.n < INT16_MAX ? (int)req->target.n : INT16_MAX, req->target.p);
}

const struct weir_event_type weir_http_request_type = {
    .name = "http.request",
    .size = sizeof(struct http_req),
    .finish = finish,
    .fields = fields,
    .trail = offsetof(struct http_req, trail),
    .describe = describe,
};

/* ---- filling ---- */

int request_fill(struct http_req *r, const struct http_head *head)
{
	struct weir_http_request *req = &r->pub;
	size_t bytes = (size_t)head->n_headers * sizeof(*head->headers);
	struct weir_http_header *headers = r->headers;

	if (head->n_headers > REQUEST_HEADERS_INLINE)
		headers = r->headers_mem = malloc(bytes);
	if (!headers)
		return WEIR_ENOMEM;
	memcpy(headers, head->headers, bytes);
	req->headers = headers;
	req->n_headers = (uint8_t)head->n_headers;
	req->method = head->method_id;
	r->head = head->method_id == WEIR_HTTP_HEAD;
	req->minor = head->minor;
	req->method_text = head->method;
	req->target = head->target;
	req->path = head->path;
	req->query = head->query;
	req->host = head->host;
	req->body = (struct weir_slice){NULL, 0};
	r->keep_alive = head->keep_alive;
	r->expect_continue = r->expects = head->expect_continue;
	return 0;
}
