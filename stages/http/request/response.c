/* SPDX-License-Identifier: MIT */
/*
 * Builds the responses of stages, and checks them so that no stage can split a response.
 *
 * A response has one of four bodies: bytes in memory, a range of a file, pieces of both, or a
 * stream (transfer.h). Setting a response releases the previous one, unless that is
 * streamed already.
 *
 * Fields added one by one are stored in the request: up to 256 bytes inline, more in memory from
 * malloc. A new response also replaces the fields of the previous one, but fields added before the
 * first response are kept. Only the owner of the event calls these functions.
 */
#include <weir/http.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/message/guard.h"
#include "http/message/put.h"
#include "http/message/status.h"
#include "http/request/request.h"

bool weir_slice_is(struct weir_slice s, const char *text)
{
	return strlen(text) == s.n && strncasecmp(s.p, text, s.n) == 0;
}

struct weir_slice weir_http_header(const struct weir_http_request *req, const char *name)
{
	size_t n = strlen(name);

	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		if (h->name.n == n && strncasecmp(h->name.p, name, n) == 0)
			return h->value;
	}
	return (struct weir_slice){NULL, 0};
}

/* The port is the digits after the last ':'. The end of an IPv6 address is not mistaken for a port,
 * since "[::1]" ends in a bracket and not in a digit. */
struct weir_slice weir_http_host_name(const struct weir_http_request *req)
{
	struct weir_slice host = req->host;
	size_t n = host.n;

	while (n > 0 && host.p[n - 1] >= '0' && host.p[n - 1] <= '9')
		n--;
	if (n > 0 && host.p[n - 1] == ':')
		host.n = n - 1;
	return host;
}

/* ---- fields ---- */

void request_fields_reset(struct weir_http_request *req)
{
	if (req->fields && req->fields != req->fields_inline)
		free(req->fields);
	req->fields = req->fields_inline;
	req->fields_size = WEIR_HTTP_FIELDS_INLINE;
	req->n_fields = 0;
}

void request_field_drop(struct weir_http_request *req, const char *name)
{
	size_t n = strlen(name);
	char *at = req->fields;

	while (at < req->fields + req->n_fields) {
		char *end = req->fields + req->n_fields,
		     *next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		if ((size_t)(next - at) > n && at[n] == ':' && strncasecmp(at, name, n) == 0) {
			memmove(at, next, (size_t)(end - next));
			req->n_fields -= (uint32_t)(next - at);
		} else {
			at = next;
		}
	}
}

/* Find a line of `fields` with this name. Returns its value. */
static struct weir_slice find_value(struct weir_slice fields, const char *name)
{
	size_t n = strlen(name);
	const char *at = fields.p, *end = at + fields.n;

	while (at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		const char *next = eol ? eol + 1 : end;
		if ((size_t)(next - at) > n + 2 && at[n] == ':' && strncasecmp(at, name, n) == 0) {
			at += n + 1;
			at += *at == ' ';
			return (struct weir_slice){at, (size_t)(next - at) - 2};
		}
		at = next;
	}
	return (struct weir_slice){NULL, 0};
}

struct weir_slice response_field(const struct weir_http_request *req, const char *name)
{
	struct weir_slice value = {NULL, 0};

	if (req->fields)
		value = find_value((struct weir_slice){req->fields, req->n_fields}, name);
	return value.p ? value : find_value(req->res.fields, name);
}

static int fields_grow(struct weir_http_request *req, size_t need)
{
	size_t size = (size_t)req->fields_size * 2;
	char *mem;

	while (size < need)
		size *= 2;
	if (need > RESPONSE_FIELDS_MAX)
		return WEIR_ENOMEM;
	mem = malloc(size);
	if (!mem)
		return WEIR_ENOMEM;
	memcpy(mem, req->fields, req->n_fields);
	if (req->fields != req->fields_inline)
		free(req->fields);
	req->fields = mem;
	req->fields_size = (uint32_t)size;
	return 0;
}

static bool value_good(struct weir_slice value)
{
	for (size_t i = 0; i < value.n; i++)
		if (((uint8_t)value.p[i] < 0x20 && value.p[i] != '\t') || value.p[i] == 0x7f)
			return false;
	return true;
}

static bool name_good(struct weir_slice name)
{
#define OURS(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
	static const struct weir_slice ours[] = {
	    OURS("Content-Length"), OURS("Connection"), OURS("Date"), OURS("Transfer-Encoding")};
#undef OURS

	if (name.n == 0 || guard_span(name.p, name.n, GUARD_TOKEN) != name.n)
		return false;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (name.n == ours[i].n && strncasecmp(name.p, ours[i].p, name.n) == 0)
			return false;
	return true;
}

bool response_field_good(const char *name, const char *value)
{
	return name_good((struct weir_slice){name, strlen(name)}) &&
	       value_good((struct weir_slice){value, strlen(value)});
}

bool weir_http_fields_good(struct weir_slice fields)
{
	const char *at = fields.p, *end = at + fields.n;

	while (at < end) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		const char *colon = eol ? memchr(at, ':', (size_t)(eol - at)) : NULL;
		if (!colon || eol[-1] != '\r')
			return false;
		if (!name_good((struct weir_slice){at, (size_t)(colon - at)}) ||
		    !value_good((struct weir_slice){colon + 1, (size_t)(eol - 1 - (colon + 1))}))
			return false;
		at = eol + 1;
	}
	return true;
}

char *request_fields_room(struct weir_http_request *req, size_t n)
{
	if (!req->fields)
		request_fields_reset(req);
	if (req->n_fields + n > req->fields_size && fields_grow(req, req->n_fields + n) != 0)
		return NULL;
	return req->fields + req->n_fields;
}

void request_fields_to(struct weir_http_request *req, const char *end)
{
	req->n_fields = (uint32_t)(end - req->fields);
}

int weir_http_add_field(struct weir_http_request *req, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);

	if (req->res.streamed || !response_field_good(name, value))
		return WEIR_EINVAL;
	char *at = request_fields_room(req, n + v + 4);
	if (!at)
		return WEIR_ENOMEM;
	at = PUT(put(at, name, n), ": ");
	request_fields_to(req, PUT(put(at, value, v), "\r\n"));
	return 0;
}

/* ---- responses ---- */

void weir_http_response_reset(struct weir_http_request *req)
{
	struct weir_http_response *res = &req->res;

	if (res->streamed) /* the I/O thread is sending the response */
		return;
	if (res->release)
		res->release(res->release_arg);
	*res = (struct weir_http_response){.fd = -1};
	request_fields_reset(req);
}

int response_own_fields(struct weir_http_request *req)
{
	struct weir_slice fields = req->res.fields;

	if (fields.n == 0)
		return 0;
	char *at = request_fields_room(req, fields.n);
	if (!at)
		return WEIR_ENOMEM;
	request_fields_to(req, put(at, fields.p, fields.n));
	req->res.fields = (struct weir_slice){NULL, 0};
	return 0;
}

int response_replace_body(
    struct weir_http_request *req, struct weir_slice body, void (*release)(void *arg), void *arg)
{
	struct weir_http_response *res = &req->res;
	int rc = res->streamed ? WEIR_EINVAL : response_own_fields(req);

	if (rc != 0) {
		if (release)
			release(arg);
		return rc;
	}
	if (res->release)
		res->release(res->release_arg);
	*res = (struct weir_http_response){.status = res->status,
	    .no_length = res->no_length,
	    .close = res->close,
	    .fd = -1,
	    .body = body,
	    .release = release,
	    .release_arg = arg};
	return 0;
}

/* Begin a response, after dropping any earlier one with its fields. Fields added before the first
 * response are kept. */
static void begin(struct weir_http_request *req, int status)
{
	if (req->res.status != 0 || req->res.release)
		weir_http_response_reset(req);
	req->res.fd = -1;
	req->res.status = (uint16_t)status;
	req->res.no_length = status == 204 || status == 304;
	req->res.standard = false;
}

static int fail(struct weir_http_request *req, int rc, void (*release)(void *arg), void *arg)
{
	if (release)
		release(arg);
	if (req->res.streamed)
		return rc;
	weir_http_response_reset(req);
	weir_http_respond_status(req, 500);
	return rc;
}

static bool status_good(int status)
{
	return status >= 200 && status <= 599;
}

int weir_http_respond(struct weir_http_request *req, int status, const char *content_type,
    struct weir_slice body, void (*release)(void *arg), void *arg)
{
	int rc = 0;

	if (!status_good(status) || req->res.streamed)
		return fail(req, WEIR_EINVAL, release, arg);
	begin(req, status);
	if (content_type)
		rc = weir_http_add_field(req, "Content-Type", content_type);
	if (rc != 0)
		return fail(req, rc, release, arg);
	req->res.body = body;
	req->res.release = release;
	req->res.release_arg = arg;
	return 0;
}

int weir_http_respond_copy(
    struct weir_http_request *req, int status, const char *content_type, struct weir_slice body)
{
	char *copy;

	if (body.n == 0)
		return weir_http_respond(req, status, content_type, body, NULL, NULL);
	copy = malloc(body.n);
	if (!copy)
		return fail(req, WEIR_ENOMEM, NULL, NULL);
	memcpy(copy, body.p, body.n);
	return weir_http_respond(
	    req, status, content_type, (struct weir_slice){copy, body.n}, free, copy);
}

int weir_http_respond_file(struct weir_http_request *req, int status, const char *content_type,
    int fd, int64_t offset, int64_t length, void (*release)(void *arg), void *arg)
{
	int rc;

	if (fd < 0 || offset < 0 || length < 0)
		return fail(req, WEIR_EINVAL, release, arg);
	rc = weir_http_respond(
	    req, status, content_type, (struct weir_slice){NULL, 0}, release, arg);
	if (rc != 0)
		return rc;
	req->res.fd = fd;
	req->res.offset = offset;
	req->res.length = length;
	return 0;
}

/* Return the total size of the pieces, or -1 if one of them cannot be sent. */
static int64_t pieces_bytes(const struct weir_http_piece *piece, int n, int fd)
{
	int64_t bytes = 0;

	for (int i = 0; i < n; i++)
		if (piece[i].n < 0 || (!piece[i].p && (fd < 0 || piece[i].offset < 0)) ||
		    __builtin_add_overflow(bytes, piece[i].n, &bytes))
			return -1;
	return bytes;
}

int weir_http_respond_pieces(struct weir_http_request *req, int status, const char *content_type,
    struct weir_http_piece *piece, int n, int fd, void (*release)(void *arg), void *arg)
{
	int64_t bytes = n > 0 && n <= UINT16_MAX ? pieces_bytes(piece, n, fd) : -1;

	if (bytes < 0)
		return fail(req, WEIR_EINVAL, release, arg);
	int rc = weir_http_respond(
	    req, status, content_type, (struct weir_slice){NULL, 0}, release, arg);
	if (rc != 0)
		return rc;
	req->res.piece = piece;
	req->res.n_pieces = (uint16_t)n;
	req->res.fd = fd < 0 ? -1 : fd;
	req->res.length = bytes;
	return 0;
}

int weir_http_respond_status(struct weir_http_request *req, int status)
{
	const struct status *s = status_find(status);
	struct weir_slice text = s ? s->text : (struct weir_slice){"Unknown\n", 8};

	if (status == 204 || status == 304)
		return weir_http_respond(
		    req, status, NULL, (struct weir_slice){NULL, 0}, NULL, NULL);
	int rc = weir_http_respond(req, status, "text/plain; charset=utf-8", text, NULL, NULL);
	req->res.standard = rc == 0 && status >= 400;
	return rc;
}

void weir_http_add_tap(struct weir_http_request *req, struct weir_http_tap *tap)
{
	tap->next = req->taps;
	req->taps = tap;
}

struct weir_http_tap *weir_http_find_tap(const struct weir_http_request *req,
    void (*fn)(struct weir_http_tap *tap, struct weir_http_request *req, int status))
{
	struct weir_http_tap *tap = req->taps;

	while (tap && tap->fn != fn)
		tap = tap->next;
	return tap;
}
