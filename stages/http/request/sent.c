/* SPDX-License-Identifier: MIT */
/* Notifies the waiters of a response; see sent.h. The code that writes a response tracks its
 * progress: write.c, write_pieces.c, transfer.h. */
#include "http/request/sent.h"

#include "http/request/transfer.h"

int64_t sent_body_bytes(const struct weir_http_request *req)
{
	if (req->method == WEIR_HTTP_HEAD || req->res.no_length)
		return 0;
	if (req->res.streamed)
		return weir_http_stream_bytes(req);
	return weir_http_body_bytes(&req->res);
}

/* Return the number of unsent bytes of the response body of `r`; see sent_tell. */
static int64_t left_of(const struct http_req *r, int64_t body_off)
{
	const struct weir_http_response *res = &r->pub.res;
	int64_t left = 0;

	if (res->streamed) /* the request has returned, so no bytes are added */
		return (int64_t)ring_used(&r->transfer->out);
	if (res->n_pieces == 0 && res->fd >= 0)
		return res->length; /* send_file in write.c decrements the length */
	if (res->n_pieces == 0)
		return (int64_t)res->body.n - body_off;
	for (int i = 0; i < res->n_pieces; i++)
		left += res->piece[i].n;
	return left;
}

void sent_tell(struct http_req *r, enum http_sent_how how, int64_t body_off)
{
	struct http_sent *s = r->sent, *next;
	int64_t left = how == HTTP_SENT_WHOLE ? 0 : left_of(r, body_off);

	r->sent = NULL;
	for (; s; s = next) {
		next = s->next;
		/* for HEAD, s->bytes is 0 although `left` may be larger */
		s->bytes = s->bytes > left ? s->bytes - left : 0;
		s->fn(s, r, how);
	}
}

void sent_again(struct http_req *r)
{
	for (struct http_sent *s = r->sent; s; s = s->next)
		s->bytes = sent_body_bytes(&r->pub);
}
