/* SPDX-License-Identifier: MIT */
#include "http/conn/take.h"

#include <stdlib.h>
#include <string.h>

#include "http/conn/conn.h"
#include "http/conn/conn_tls.h"

bool http_asks_upgrade(const struct weir_http_request *req)
{
	return ((const struct http_req *)req)->upgrade;
}

bool http_may_take(const struct weir_http_request *req, const struct weir_loop *loop)
{
	const struct http_req *r = (const struct http_req *)req;

	return r->loop && r->loop == loop;
}

int http_take(struct weir_http_request *req, struct http_taken *out)
{
	struct http_req *r = (struct http_req *)req;
	struct conn *c = r->conn;
	const struct stream *s = &c->stream;

	*out = (struct http_taken){.fd = -1};
	if (!conn_is_open(c) || c->phase != CONN_OPEN || c->input == INPUT_ENDED)
		return WEIR_EGONE;
	if (c->first != r || r->next || c->part.begun || c->socket.blocked ||
	    c->socket.continue_left)
		return WEIR_EBUSY;
	out->n_early = s->in ? s->end - s->start : 0;
	if (out->n_early > 0) {
		out->early = malloc(out->n_early);
		if (!out->early)
			return WEIR_ENOMEM;
		memcpy(out->early, s->in->data + s->start, out->n_early);
	}
	r->taken = true;
	out->fd = conn_detach(c);
	out->tls = conn_tls_set(c, NULL);
	return 0;
}
