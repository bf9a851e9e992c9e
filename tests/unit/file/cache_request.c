/* SPDX-License-Identifier: MIT */
#include "unit/file/cache_request.h"

struct weir_slice slice(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

void request_init(struct test_request *t, const char *path)
{
	memset(t, 0, sizeof(*t));
	t->req = calloc(1, weir_http_request_type.size);
	t->req->method = WEIR_HTTP_GET;
	t->req->method_text = slice("GET");
	t->req->minor = 1;
	t->req->path = t->req->target = slice(path);
	t->req->headers = t->headers;
	t->req->res.fd = -1;
}

void request_header(struct test_request *t, const char *name, const char *value)
{
	t->headers[t->req->n_headers].name = slice(name);
	t->headers[t->req->n_headers++].value = slice(value);
}

void request_fini(struct test_request *t)
{
	weir_http_response_reset(t->req);
	free(t->req);
}

char *request_body(const struct test_request *t)
{
	const struct weir_http_response *res = &t->req->res;
	char *text = calloc(1, (size_t)weir_http_body_bytes(res) + 1), *to = text;

	if (res->n_pieces == 0 && res->fd == -1 && res->body.n > 0)
		memcpy(text, res->body.p, res->body.n);
	if (res->n_pieces == 0 && res->fd >= 0 &&
	    pread(res->fd, text, (size_t)res->length, res->offset) != res->length)
		abort();
	for (int i = 0; i < res->n_pieces; to += res->piece[i++].n) {
		const struct weir_http_piece *p = &res->piece[i];
		if (p->p)
			memcpy(to, p->p, (size_t)p->n);
		else if (pread(res->fd, to, (size_t)p->n, p->offset) != p->n)
			abort();
	}
	return text;
}

char *request_fields(const struct test_request *t)
{
	const struct weir_http_request *r = t->req;
	char *text = calloc(1, r->res.fields.n + r->n_fields + 1);

	if (r->res.fields.n)
		memcpy(text, r->res.fields.p, r->res.fields.n);
	if (r->n_fields)
		memcpy(text + r->res.fields.n, r->fields, r->n_fields);
	return text;
}
