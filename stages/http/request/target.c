/* SPDX-License-Identifier: MIT */
/*
 * Replaces the target of a request; memory that requests keep.
 *
 * The new path is checked and normalized like one that a client sends, so that later stages, and an
 * origin, get a path that was judged. Earlier targets stay valid until the request is freed, since
 * stages may have kept slices of them.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>

#include "http/message/guard.h"
#include "http/message/normal_path.h"
#include "http/request/request.h"

/* Memory that belongs to a request. */
struct http_kept {
	_Alignas(16) struct http_kept *next;
	_Alignas(16) char mem[];
};

void *request_keep(struct http_req *r, size_t bytes)
{
	struct http_kept *k = malloc(sizeof(*k) + bytes);

	if (!k)
		return NULL;
	k->next = r->kept;
	r->kept = k;
	r->kept_bytes += (uint32_t)(sizeof(*k) + bytes);
	return k->mem;
}

/* Whether `s` has only bytes of one of `kinds`. An escape must be complete if `strict`, and never
 * represent NUL. */
static bool bytes_good(struct weir_slice s, unsigned kinds, bool strict)
{
	if (guard_span(s.p, s.n, kinds) != s.n)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '%')
			continue;
		bool whole = s.n - i >= 3 && guard_is(s.p[i + 1], GUARD_HEX) &&
			     guard_is(s.p[i + 2], GUARD_HEX);
		if (whole ? s.p[i + 1] == '0' && s.p[i + 2] == '0' : strict)
			return false;
	}
	return true;
}

int weir_http_set_target(
    struct weir_http_request *req, struct weir_slice path, const struct weir_slice *query)
{
	struct http_req *r = (struct http_req *)req;
	size_t query_n = query ? query->n + 1 : 0;

	if (path.n == 0 || path.p[0] != '/' || path.n + query_n > WEIR_HTTP_TARGET_MAX ||
	    !bytes_good(path, GUARD_PATH, true) ||
	    (query && !bytes_good(*query, GUARD_QUERY, false)))
		return WEIR_EINVAL;
	char *text = request_keep(r, path.n + 1 + query_n);
	if (!text)
		return WEIR_ENOMEM;
	long n = normal_path(path, text);
	if (n < 0)
		return WEIR_EINVAL;
	char *end = text + n;
	if (query) {
		*end++ = '?';
		if (query->n > 0)
			memcpy(end, query->p, query->n);
	}
	req->path = (struct weir_slice){text, (size_t)n};
	req->query = (struct weir_slice){end, query ? query->n : 0};
	return 0;
}

void request_kept_drop(struct http_req *r)
{
	while (r->kept) {
		struct http_kept *k = r->kept;
		r->kept = k->next;
		free(k);
	}
	r->kept_bytes = 0;
}
