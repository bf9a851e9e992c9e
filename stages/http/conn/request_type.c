/* SPDX-License-Identifier: MIT */
/*
 * Implements requests as events: their fields for classes and keys, and their return when they are
 * finished.
 *
 * The finish callback runs in the thread that finishes the event. It completes the response there
 * (default response, taps) and sends the request to the I/O thread of its connection. Only that
 * thread writes the response and frees the request.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weir/http.h>
#include <weir/trace.h>

#include "http/conn/conn.h"
#include "net/tls/tls_conn.h"
#include "http/message/normal_path.h"
#include "http/request/filter.h"
#include "http/request/refusal.h"
#include "http/request/request.h"
#include "http/request/transfer.h"

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
	return weir_http_host_name(pub_of(ev));
}

/* The query follows the path (weir/http.h), with a '?' between them. */
static struct weir_slice get_target(const struct weir_event *ev, const char *arg)
{
	const struct weir_http_request *req = pub_of(ev);

	(void)arg;
	if (!req->query.p)
		return req->path;
	return (struct weir_slice){
	    req->path.p, (size_t)(req->query.p + req->query.n - req->path.p)};
}

static struct weir_slice get_peer(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c ? (struct weir_slice){c->net.client.address, c->net.client.address_n}
		 : (struct weir_slice){NULL, 0};
}

static struct weir_slice get_address(const struct weir_event *ev, const char *arg)
{
	const struct http_req *r = (const struct http_req *)pub_of(ev);

	if (r->client_n > 0)
		return (struct weir_slice){r->client, r->client_n};
	return get_peer(ev, arg);
}

static struct weir_slice get_connection(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c ? (struct weir_slice){c->net.client.id, sizeof(c->net.client.id)}
		 : (struct weir_slice){NULL, 0};
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
	const struct http_req *r = (const struct http_req *)pub_of(ev);

	(void)arg;
	return slice_of(
	    (r->has_scheme ? r->is_secure : r->conn && r->conn->net.tls) ? "https" : "http");
}

static struct weir_slice get_tls(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c && c->net.tls ? slice_of(tls_version(c->net.tls)) : (struct weir_slice){NULL, 0};
}

static struct weir_slice get_sni(const struct weir_event *ev, const char *arg)
{
	const struct conn *c = conn_of(ev);

	(void)arg;
	return c && c->net.tls ? slice_of(tls_sni(c->net.tls)) : (struct weir_slice){NULL, 0};
}

static const struct weir_field fields[] = {
    {"path", get_path, "path in its normal form, in which /%61/../b//c is /b/c"},
    {"method", get_method, "method, as sent"},
    {"host", get_host, "name of the host the request is for, in lower case, without port"},
    {"target", get_target, "path in its normal form, with the query as sent"},
    {"address", get_address,
	"address of the client, without its port; of the one that a proxy in "
	"'trust' names, if it names one"},
    {"peer", get_peer, "address of the other end of the connection, a proxy or the client"},
    {"connection", get_connection, "identifier of the connection: 8 bytes, unique in this process"},
    {"scheme", get_scheme, "https with TLS, else http; what a proxy in 'trust' says, if it does"},
    {"tls", get_tls, "TLS version, such as TLSv1.3; none without TLS"},
    {"sni", get_sni, "server name that the client asked for in its TLS handshake"},
    {"header.", get_header, "followed by a name: value of the first header field with that name"},
    {NULL, NULL, NULL},
};

/* ---- finishing ---- */

/* Name the trace in the response, so that a failure can be looked up by it. */
WEIR_COLD static void name_trace(struct http_req *r)
{
	char text[WEIR_TRACE_ID_BYTES];

	if (refusal_trace_text(&r->pub.ev, text))
		weir_http_add_field(&r->pub, "X-Weir-Trace", text);
}

static int retry_after_s(const struct http_req *r)
{
	return r->loop ? conn_retry_after_s(r->conn) : 0;
}

static void default_answer(struct http_req *r, int status)
{
	switch (weir_outcome_of(status)) {
	case WEIR_OUTCOME_DONE:
		if (r->pub.res.status == 0)
			weir_http_respond_status(&r->pub, 204);
		return;
	case WEIR_OUTCOME_SHED:
		refusal_answer(r, status, retry_after_s(r));
		return;
	default:
		if (status == WEIR_ECLOSED) {
			refusal_closed(r, retry_after_s(r));
		} else {
			const char *limit = NULL;
			int torn = r->transfer ? transfer_torn_status(r->transfer, &limit) : 0;
			refusal_torn(r, torn ? torn : 500, limit, retry_after_s(r));
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

static void filter_whole(struct http_req *r, int status)
{
	if (filters_head(&r->pub, NULL) != 0) {
		weir_http_response_reset(&r->pub);
		weir_http_respond_status(&r->pub, 500);
	}
	filters_end(&r->pub, status);
}

static void finish(struct weir_event *ev, int status)
{
	struct http_req *r = weir_event_cast(ev, &weir_http_request_type);

	r->outcome = (int16_t)status;
	if (WEIR_UNLIKELY(r->filters != NULL) && r->pub.res.streamed)
		filters_end(&r->pub, status); /* may write the last bytes */
	/* a streamed response that has begun is only ended, not replaced */
	if (WEIR_LIKELY(!r->transfer) || !transfer_finished(r->transfer, status)) {
		default_answer(r, status);
		if (WEIR_UNLIKELY(r->filters != NULL))
			filter_whole(r, status);
	}
	run_taps(&r->pub, status);
	if (!r->loop)
		return;
	if (weir_loop_is_mine(r->loop))
		conn_answered(r);
	else
		weir_loop_send(r->loop, ev);
}

struct weir_family *weir_http_family(struct weir_http_request *req)
{
	struct http_req *r = (struct http_req *)req;
	struct weir_family *f = r->op.family;

	if (f)
		return f;
	f = weir_family_new(NULL);
	if (!f)
		return NULL;
	if (weir_family_join(f, &req->ev) != 0) {
		weir_family_put(f);
		return NULL;
	}
	if (!r->loop) {
		weir_family_put(f);
		return f;
	}
	/* conn_gone sets `gone` and then reads `family`: at least one of the two calls ends it */
	atomic_store(&r->family, f);
	if (atomic_load(&r->conn->gone))
		weir_family_end(f);
	return f;
}

static void describe(const struct weir_event *ev, char *buf, size_t size)
{
	const struct weir_http_request *req = pub_of(ev);

	snprintf(buf, size, "%.*s %.*s", (int)req->method_text.n, req->method_text.p,
	    req->target.n < INT16_MAX ? (int)req->target.n : INT16_MAX, req->target.p);
}

/* Whether a request can match the pattern, which is compared with the host as get_host returns
 * it. */
static bool host_pattern(const char *pattern, size_t n, bool prefix, char *hint, size_t size)
{
	bool address = n > 0 && pattern[0] == '[';
	bool good = address ? prefix || pattern[n - 1] == ']' : !memchr(pattern, ':', n);

	for (size_t i = 0; i < n; i++)
		good = good && !(pattern[i] >= 'A' && pattern[i] <= 'Z');
	good = good && (prefix || n == 0 || pattern[n - 1] != '.');
	if (!good)
		snprintf(
		    hint, size, "write the host in lower case, without a port or a trailing dot");
	return good;
}

static bool may_match(const struct weir_field *field, const char *pattern, size_t n, bool prefix,
    char *hint, size_t size)
{
	if (field->get == get_path)
		return normal_path_pattern(pattern, n, prefix, hint, size);
	/* only the path is checked, since the query is compared as sent */
	if (field->get == get_target) {
		size_t path = n > 0 ? strcspn(pattern, "?") : 0;
		bool whole = path < n;
		return normal_path_pattern(pattern, whole ? path : n, prefix && !whole, hint, size);
	}
	return field->get != get_host || host_pattern(pattern, n, prefix, hint, size);
}

const struct weir_event_type weir_http_request_type = {
    .name = "http.request",
    .size = sizeof(struct http_req),
    .finish = finish,
    .fields = fields,
    .trail = offsetof(struct http_req, trail),
    .payloads = offsetof(struct http_req, payloads),
    .op = offsetof(struct http_req, op),
    .describe = describe,
    .may_match = may_match,
};
