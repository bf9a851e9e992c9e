/* SPDX-License-Identifier: MIT */
/*
 * Requests in the background, for stale-while-revalidate. Such a request is a child of the one that found the
 * stale object (weir/op.h), which nobody awaits: it has the class, the trace and the deadline of its parent,
 * passes admission at the origin as others do, and is waited for by a drain. It has a copy of the parent's head,
 * since the parent may end first.
 */
#include <stdlib.h>
#include <string.h>

#include "http/cache/http_cache.h"
#include "http/message/put.h"
#include "http/request/request.h"

struct background {
	struct weir_http_tap tap; /* first; runs last of all */
	struct weir_http_header headers[UINT8_MAX];
	char text[];
};

static void over(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	(void)status;
	req->res.streamed = false; /* it was sent to no client */
	weir_http_response_reset(req);
	request_kept_drop((struct http_req *)req);
	free(tap);
}

static size_t text_bytes(const struct weir_http_request *req)
{
	size_t n = req->path.n + req->query.n + req->host.n + req->target.n;

	for (int i = 0; i < req->n_headers; i++)
		n += req->headers[i].name.n + req->headers[i].value.n;
	return n;
}

static char *copy(char *at, struct weir_slice from, struct weir_slice *to)
{
	*to = (struct weir_slice){at, from.n};
	return from.n > 0 ? put(at, from.p, from.n) : at;
}

static void copy_head(
    struct weir_http_request *to, const struct weir_http_request *from, struct background *b)
{
	char *at = b->text;

	to->method = WEIR_HTTP_GET;
	to->method_text = (struct weir_slice){"GET", 3};
	to->minor = from->minor;
	at = copy(at, from->path, &to->path);
	at = copy(at, from->query, &to->query);
	at = copy(at, from->target, &to->target);
	at = copy(at, from->host, &to->host);
	for (int i = 0; i < from->n_headers; i++) {
		at = copy(at, from->headers[i].name, &b->headers[i].name);
		at = copy(at, from->headers[i].value, &b->headers[i].value);
	}
	to->headers = b->headers;
	to->n_headers = from->n_headers;
	to->res.fd = -1;
	/* the key includes these facts about the client, which http.client tells the origin */
	const struct http_req *f = (const struct http_req *)from;
	struct http_req *t = (struct http_req *)to;
	t->client_n = f->client_n;
	t->from_forwarded = f->from_forwarded;
	memcpy(t->client, f->client, sizeof(t->client));
	t->has_scheme = true;
	t->is_secure = hcache_is_secure(from);
}

void hcache_refresh(struct weir_stage *st, struct weir_event *ev, const struct hcache_lookup *k,
    struct hcache_object *o)
{
	const struct weir_http_request *req = weir_http_request(ev);
	struct weir_event *child = weir_event_new(st, &weir_http_request_type);
	struct background *b = malloc(sizeof(*b) + text_bytes(req));
	struct hcache_flight *f = child && b ? hcache_flight_new(st, req, k, o) : NULL;

	if (!f) {
		free(b);
		if (child)
			weir_event_finish(&child, WEIR_ENOMEM);
		return;
	}
	struct weir_http_request *mine = weir_http_request(child);
	copy_head(mine, req, b);
	b->tap.fn = over;
	weir_http_add_tap(mine, &b->tap);
	f->background = true;
	f->fields_start = 0;
	f->purges = atomic_load(&((struct hcache_state *)weir_state(st))->flights.purges);
	weir_count(st, HCACHE_BACKGROUND, 1);
	hcache_take_off(f, mine);
	weir_child(st, ev, HCACHE_MISS, &child);
}
