/* SPDX-License-Identifier: MIT */
/* Decides which answers are compressed; see compress.h. */
#include <string.h>
#include <strings.h>

#include "http/request/request.h"
#include "http/site/compress.h"
#include "http/site/cors.h"
#include "http/site/list.h"

static bool status_may(int status)
{
	return status >= 200 && status != 204 && status != 205 && status != 206 &&
	       (status < 300 || status >= 400);
}

/* Whether the media type `type`, without parameters, is `pattern`, in which a '*' stands for any bytes. */
static bool type_is(struct weir_slice type, const char *pattern)
{
	const char *star = strchr(pattern, '*');
	size_t head = star ? (size_t)(star - pattern) : strlen(pattern);
	size_t tail = star ? strlen(star + 1) : 0;

	if (star ? type.n < head + tail : type.n != head)
		return false;
	return strncasecmp(type.p, pattern, head) == 0 &&
	       (!star || strncasecmp(type.p + type.n - tail, star + 1, tail) == 0);
}

static const char *const usual_types[] = {"text/*", "application/json", "application/javascript",
    "application/xml", "application/*+json", "application/*+xml", "image/svg+xml"};

static bool type_may(const struct compress_conf *conf, struct weir_slice type)
{
	size_t n = 0;

	while (n < type.n && type.p[n] != ';' && type.p[n] != ' ')
		n++;
	type.n = n;
	for (int i = 0; i < conf->types.n; i++)
		if (type_is(type, conf->types.items[i]))
			return true;
	for (size_t i = 0; conf->types.n == 0 && i < sizeof(usual_types) / sizeof(usual_types[0]);
	     i++)
		if (type_is(type, usual_types[i]))
			return true;
	return false;
}

/* An answer that is one user's may hold a secret next to bytes that somebody else chose; its compressed
 * length would tell them (BREACH). */
static bool is_private(const struct weir_http_request *req)
{
	return response_field(req, "set-cookie").p ||
	       list_has(response_field(req, "cache-control"), "private");
}

bool compress_may(
    const struct compress_conf *conf, const struct weir_http_request *req, int64_t length)
{
	struct weir_slice control = response_field(req, "cache-control");

	return status_may(req->res.status) && (length < 0 || length >= conf->min_length) &&
	       type_may(conf, response_field(req, "content-type")) &&
	       !response_field(req, "content-encoding").p &&
	       !response_field(req, "content-range").p && !list_has(control, "no-transform") &&
	       !is_private(req);
}

/* The bytes are others now, so a strong tag would promise too much (RFC 9110, 8.8.1). */
static int weaken(struct weir_http_request *req)
{
	struct weir_slice tag = response_field(req, "etag");
	char weak[260];

	if (tag.n == 0 || tag.p[0] != '"')
		return 0; /* none, or weak already */
	bool fits = tag.n < sizeof(weak) - 2;
	if (fits) {
		memcpy(weak, "W/", 2);
		memcpy(weak + 2, tag.p, tag.n);
		weak[2 + tag.n] = '\0';
	}
	request_field_drop(req, "ETag");
	return fits ? weir_http_add_field(req, "ETag", weak) : 0;
}

int compress_fields(struct weir_http_request *req, enum encoding e)
{
	static const char *const of_bytes[] = {
	    "Accept-Ranges", "Content-MD5", "Digest", "Content-Digest", "Repr-Digest"};

	for (size_t i = 0; i < sizeof(of_bytes) / sizeof(of_bytes[0]); i++)
		request_field_drop(req, of_bytes[i]);
	int rc = weaken(req);
	return rc == 0 ? weir_http_add_field(req, "Content-Encoding", encoding_token(e)) : rc;
}
