/* SPDX-License-Identifier: MIT */
/* Fills requests from parsed heads; see request.h. */
#include "http/request/request.h"

#include <stdlib.h>
#include <string.h>

#include "http/message/normal_path.h"
#include "http/message/parse.h"

/* Return the number of bytes needed to store the path with the query, and the host, in normal
 * spelling. A part that was received in normal spelling needs none. The 2 extra bytes hold the '?'
 * before the query and the '/' that replaces an empty path. */
static size_t spelling_bytes(const struct http_head *head)
{
	size_t path = head->path_differs ? head->path.n + head->query.n + 2 : 0;

	return path + (head->host_differs ? head->host.n : 0);
}

/* Write the normal path, followed by the query, since get_target returns both as one slice. */
static char *spell_path(struct weir_http_request *req, char *to)
{
	long n = normal_path(req->path, to);
	struct weir_slice query = req->query;
	const char *raw_end = req->target.p + req->target.n;

	WEIR_ASSERT(n > 0); /* guard_path */
	req->path = (struct weir_slice){to, (size_t)n};
	to += n;
	req->query = (struct weir_slice){to, 0};
	if (query.p == raw_end && query.p[-1] != '?')
		return to;
	*to++ = '?';
	req->query = (struct weir_slice){to, query.n};
	return (char *)mempcpy(to, query.p, query.n);
}

/* Write the host in lowercase, without a trailing dot in its name. */
static void spell_host(struct weir_http_request *req, char *to)
{
	struct weir_slice host = req->host;
	size_t n = 0;

	req->host.p = to;
	for (size_t i = 0; i < host.n; i++) {
		bool ends = i + 1 == host.n || host.p[i + 1] == ':';
		if (host.p[i] == '.' && ends)
			continue;
		char c = host.p[i];
		to[n++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	req->host.n = n;
}

/* Allocate memory for headers beyond the inline ones and for normal spellings, and write the normal
 * spellings there. Returns 0 or WEIR_ENOMEM. */
static int fill_mem(struct http_req *r, const struct http_head *head, uint64_t *held)
{
	size_t headers = head->n_headers > REQUEST_HEADERS_INLINE
			     ? (size_t)head->n_headers * sizeof(*head->headers)
			     : 0;
	size_t bytes = headers + spelling_bytes(head);

	*held = bytes;
	if (WEIR_LIKELY(bytes == 0))
		return 0;
	r->mem = malloc(bytes);
	if (!r->mem)
		return WEIR_ENOMEM;
	char *at = (char *)r->mem + headers;
	if (head->path_differs)
		at = spell_path(&r->pub, at);
	if (head->host_differs)
		spell_host(&r->pub, at);
	return 0;
}

int request_fill(struct http_req *r, const struct http_head *head, uint64_t *held)
{
	struct weir_http_request *req = &r->pub;
	struct weir_http_header *headers = r->headers;

	req->target = head->target;
	req->path = head->path;
	req->query = head->query;
	req->host = head->host;
	if (fill_mem(r, head, held) != 0)
		return WEIR_ENOMEM;
	if (head->n_headers > REQUEST_HEADERS_INLINE)
		headers = r->mem;
	memcpy(headers, head->headers, (size_t)head->n_headers * sizeof(*headers));
	req->headers = headers;
	req->n_headers = (uint8_t)head->n_headers;
	req->method = head->method_id;
	r->head = head->method_id == WEIR_HTTP_HEAD;
	req->minor = head->minor;
	req->method_text = head->method;
	req->body = (struct weir_slice){NULL, 0};
	r->keep_alive = head->keep_alive;
	r->upgrade = head->upgrade;
	r->taken = false;
	r->expect_continue = r->expects = head->expect_continue;
	return 0;
}
