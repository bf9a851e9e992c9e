/* SPDX-License-Identifier: MIT */
/*
 * The head of a request to an origin.
 *
 * The origin gets the path in its normal form, the one that classes, routes and rules have judged. Fields
 * for one hop (RFC 9110, 7.6.1) are left out, and so is what the client says of the path so far, unless
 * a proxy in `trust` of http.server has said it.
 */
#include <string.h>

#include "http/client/client_calls.h"
#include "http/message/put.h"
#include "http/request/request.h"

/* What is added at most besides copies of the client's bytes: the request line, the deadline, the trace,
 * addresses and names of fields. */
#define ADDED_BYTES 1024

enum field_kind {
	PASS,
	DROP,
	/* What proxies say of the client. They are dropped unless `http.server` believes them: others may
	 * be the client's own, passed on by a proxy that does not know them. */
	CHAIN_X,
	CHAIN_FORWARDED,
};

#define SPECIAL(text) text, sizeof(text) - 1
static const struct {
	const char *name;
	size_t n;
	enum field_kind kind;
} special[] = {
    {SPECIAL("connection"), DROP},
    {SPECIAL("content-length"), DROP}, /* written anew */
    {SPECIAL("expect"), DROP},         /* http.server sends 100 Continue itself */
    {SPECIAL("forwarded"), CHAIN_FORWARDED},
    {SPECIAL("host"), DROP}, /* written anew */
    {SPECIAL("keep-alive"), DROP},
    {SPECIAL("proxy-authenticate"), DROP},
    {SPECIAL("proxy-authorization"), DROP},
    {SPECIAL("proxy-connection"), DROP},
    {SPECIAL("te"), DROP},
    {SPECIAL("traceparent"), DROP}, /* written anew */
    {SPECIAL("trailer"), DROP},     /* trailers of requests are not passed on */
    {SPECIAL("transfer-encoding"), DROP},
    {SPECIAL("upgrade"), DROP},
    {SPECIAL("x-deadline-ms"), DROP},   /* written anew */
    {SPECIAL("x-forwarded-"), CHAIN_X}, /* and all that begin so */
    {SPECIAL("x-real-ip"), CHAIN_X},
};
#undef SPECIAL

/* Whether `name` begins with `lower`, in any case. CGI and its successors (WSGI, PHP) give a program the
 * same variable for '_' and '-', so the two count as the same here. */
static bool begins(struct weir_slice name, const char *lower, size_t n)
{
	if (name.n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name.p[i] == '_' ? '-' : name.p[i];
		if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != lower[i])
			return false;
	}
	return true;
}

static enum field_kind kind_of(struct weir_slice name)
{
	/* all of them begin with one of these letters; most other fields do not */
	if (!memchr("cefhkptuxCEFHKPTUX", name.p[0], 18))
		return PASS;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		size_t n = special[i].n;
		bool prefix = special[i].name[n - 1] == '-';
		if (begins(name, special[i].name, n) && (prefix || name.n == n))
			return memchr(name.p, '_', name.n) ? DROP : special[i].kind;
	}
	return PASS;
}

/* Whether a Connection field names the field `name`, which is then for this hop alone. */
static bool is_named(const struct weir_http_request *req, struct weir_slice name)
{
	for (int i = 0; i < req->n_headers; i++)
		if (weir_slice_is(req->headers[i].name, "connection") &&
		    client_lists(req->headers[i].value, name))
			return true;
	return false;
}

static char *put_slice(char *at, struct weir_slice s)
{
	return s.n > 0 ? put(at, s.p, s.n) : at;
}

static char *put_field(char *at, struct weir_slice name, struct weir_slice value)
{
	at = PUT(put_slice(at, name), ": ");
	at = put_slice(at, value);
	return PUT(at, "\r\n");
}

static struct weir_slice get(const struct weir_field *f, const struct weir_event *ev)
{
	return f ? f->get(ev, NULL) : (struct weir_slice){NULL, 0};
}

static char *put_target(char *at, const struct weir_http_request *req)
{
	at = put_slice(at, req->path);
	if (req->query.n > 0 || req->query.p > req->path.p + req->path.n)
		at = put_slice(PUT(at, "?"), req->query);
	return at;
}

/* An address in Forwarded: an IPv6 one is in brackets and quotes (RFC 7239, 6). */
static char *put_node(char *at, struct weir_slice address)
{
	if (!memchr(address.p, ':', address.n))
		return put_slice(at, address);
	return PUT(put_slice(PUT(at, "\"["), address), "]\"");
}

static char *put_proto(char *at, const struct exchange *x)
{
	return put_slice(PUT(at, ";proto="), get(x->cl->client->scheme, x->ev));
}

/* Forwarded of this hop. Before it is what a proxy has said in X-Forwarded-For. */
static char *put_forwarded(char *at, const struct exchange *x, struct weir_slice peer)
{
	const struct http_req *r = (const struct http_req *)x->req;

	at = PUT(at, "Forwarded: for=");
	if (r->client_n > 0 && !r->from_forwarded) {
		at = put_node(at, (struct weir_slice){r->client, r->client_n});
		at = PUT(r->has_scheme ? put_proto(at, x) : at, ", for=");
	}
	at = put_node(at, peer);
	return PUT(r->client_n > 0 ? at : put_proto(at, x), "\r\n");
}

static char *put_chain(char *at, const struct exchange *x)
{
	const struct http_req *r = (const struct http_req *)x->req;
	struct weir_slice peer = get(x->cl->client->peer, x->ev);
	bool ours =
	    r->client_n == 0 || r->from_forwarded; /* else a proxy has written X-Forwarded- */

	if (peer.n > 0) { /* else the request is made by a stage */
		at = put_forwarded(at, x, peer);
		at = PUT(at, "X-Forwarded-For: ");
		if (r->client_n > 0 && r->from_forwarded)
			at = PUT(put_slice(at, (struct weir_slice){r->client, r->client_n}), ", ");
		at = PUT(put_slice(at, peer), "\r\n");
	}
	if (ours && (r->client_n == 0 || r->has_scheme)) {
		at = put_slice(PUT(at, "X-Forwarded-Proto: "), get(x->cl->client->scheme, x->ev));
		at = PUT(at, "\r\n");
	}
	if (ours && x->req->host.n > 0)
		at = PUT(put_slice(PUT(at, "X-Forwarded-Host: "), x->req->host), "\r\n");
	return at;
}

/* Whether an origin could wait for a body if no length were sent, or answer 411. */
static bool has_meaning(const struct weir_http_request *req)
{
	return req->method == WEIR_HTTP_POST || req->method == WEIR_HTTP_PUT ||
	       req->method == WEIR_HTTP_PATCH || weir_http_header(req, "transfer-encoding").n > 0;
}

/* How long the body is, and how it is sent. */
static char *put_length(char *at, struct exchange *x)
{
	struct weir_slice length = weir_http_header(x->req, "content-length");

	x->ask.chunked = weir_http_body_streamed(x->req) && length.n == 0;
	if (x->ask.chunked)
		return PUT(at, "Transfer-Encoding: chunked\r\n");
	if (weir_http_body_streamed(x->req))
		return PUT(put_slice(PUT(at, "Content-Length: "), length), "\r\n");
	/* the length that has arrived: the client may have sent chunks */
	if (length.n == 0 && x->req->body.n == 0 && !has_meaning(x->req))
		return at;
	return PUT(put_number(PUT(at, "Content-Length: "), x->req->body.n), "\r\n");
}

static char *put_fields(char *at, struct exchange *x)
{
	const struct weir_http_request *req = x->req;
	const struct http_req *r = (const struct http_req *)req;
	enum field_kind said = r->client_n == 0    ? PASS
			       : r->from_forwarded ? CHAIN_FORWARDED
						   : CHAIN_X;
	bool named = weir_http_header(req, "connection").n > 0;

	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		enum field_kind kind = kind_of(h->name);
		if (kind == PASS || kind == said)
			if (!named || !is_named(req, h->name))
				at = put_field(at, h->name, h->value);
	}
	return at;
}

static size_t most(const struct weir_http_request *req)
{
	size_t n = ADDED_BYTES + req->method_text.n + req->path.n + req->query.n + 2 * req->host.n;

	for (int i = 0; i < req->n_headers; i++)
		n += req->headers[i].name.n + req->headers[i].value.n + 4;
	return n;
}

int ask_head(struct exchange *x)
{
	struct weir_http_request *req = x->req;
	const struct origin *o = x->up->origin;
	const char *authority = origin_authority(o->spec);
	char *at = x->cl->scratch;
	int n;

	if (most(req) > CLIENT_SCRATCH_BYTES)
		return 0;
	at = PUT(put_slice(at, req->method_text), " ");
	at = PUT(put_target(at, req), " HTTP/1.1\r\nHost: ");
	at = req->host.n > 0 ? put_slice(at, req->host) : put(at, authority, strlen(authority));
	at = put_fields(PUT(at, "\r\n"), x);
	x->trailers = trailers_wanted(x->req);
	if (x->trailers && !x->upgrade)
		at = PUT(at, "Connection: TE\r\nTE: trailers\r\n");
	if (x->upgrade)
		at = PUT(at, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	at = put_chain(at, x);
	at = PUT(at, "Via: ");
	at = put(at, x->cl->client->via, strlen(x->cl->client->via));
	at = put_length(PUT(at, "\r\n"), x);
	n = weir_http_deadline_field(req, o->rtt_ns, at, WEIR_HTTP_DEADLINE_BYTES);
	if (n < 0)
		return n;
	at += n;
	n = weir_http_trace_field(req, at, WEIR_HTTP_TRACE_BYTES);
	at += n > 0 ? n : 0;
	return (int)(PUT(at, "\r\n") - x->cl->scratch);
}
