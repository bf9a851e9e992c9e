/* SPDX-License-Identifier: MIT */
/*
 * Trailers of answers: fields behind a body in chunks (RFC 9110, 6.5).
 *
 * They are passed on if the client has sent `TE: trailers`. Fields that a recipient must have before the body,
 * or that decide about framing, caching, routing or access, are dropped (6.5.1).
 */
#include <stdlib.h>
#include <string.h>

#include "http/client/client.h"

bool trailers_wanted(const struct weir_http_request *req)
{
	static const struct weir_slice word = {"trailers", 8};

	return req->minor > 0 && client_lists(weir_http_header(req, "te"), word);
}

void trailers_keep(struct exchange *x, const char *p, size_t n)
{
	char *more = realloc(x->trailer, x->n_trailer + n);

	if (!more) { /* trailers may be dropped */
		x->trailers = false;
		return;
	}
	memcpy(more + x->n_trailer, p, n);
	x->trailer = more;
	x->n_trailer += n;
}

static bool is_dropped(struct weir_slice name)
{
	static const char *const names[] = {"age", "authentication-info", "authorization",
	    "cache-control", "connection", "content-encoding", "content-length", "content-range",
	    "content-type", "cookie", "date", "expect", "expires", "host", "keep-alive", "location",
	    "max-forwards", "pragma", "proxy-authenticate", "proxy-authentication-info",
	    "proxy-authorization", "proxy-connection", "range", "retry-after", "server",
	    "set-cookie", "strict-transport-security", "te", "trailer", "transfer-encoding",
	    "upgrade", "vary", "via", "warning", "www-authenticate"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (weir_slice_is(name, names[i]))
			return true;
	return false;
}

/* Pass on the field in line[0..n), without its CRLF. The line may be changed. */
static void pass(struct exchange *x, char *line, size_t n)
{
	char *colon = memchr(line, ':', n), *value;

	if (!colon || is_dropped((struct weir_slice){line, (size_t)(colon - line)}))
		return;
	line[n] = '\0';
	while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		line[--n] = '\0';
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	weir_http_stream_trailer(x->req, line, value);
}

void trailers_pass(struct exchange *x)
{
	char *at = x->trailer, *end = at + x->n_trailer, *line_end;

	while (at < end && (line_end = memchr(at, '\r', (size_t)(end - at))) && line_end > at) {
		pass(x, at, (size_t)(line_end - at));
		at = line_end + 2;
	}
}
