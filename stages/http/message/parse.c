/* SPDX-License-Identifier: MIT */
/* Runs llhttp as a cross-check after the byte guard; see parse.h. */
#include "http/message/parse.h"

#include <llhttp.h>
#include <string.h>

static int stop_at_body(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {.on_headers_complete = stop_at_body};

static enum weir_http_method method_of(uint8_t llhttp_method)
{
	switch (llhttp_method) {
	case HTTP_GET:
		return WEIR_HTTP_GET;
	case HTTP_HEAD:
		return WEIR_HTTP_HEAD;
	case HTTP_POST:
		return WEIR_HTTP_POST;
	case HTTP_PUT:
		return WEIR_HTTP_PUT;
	case HTTP_DELETE:
		return WEIR_HTTP_DELETE;
	case HTTP_PATCH:
		return WEIR_HTTP_PATCH;
	case HTTP_OPTIONS:
		return WEIR_HTTP_OPTIONS;
	default:
		return WEIR_HTTP_OTHER;
	}
}

static bool agree(const llhttp_t *parser, const struct http_head *head)
{
	bool chunked = (parser->flags & F_CHUNKED) != 0;
	bool length = (parser->flags & F_CONTENT_LENGTH) != 0;

	return chunked == head->chunked && length == head->has_length && parser->http_major == 1 &&
	       parser->http_minor == head->minor &&
	       (!length || parser->content_length == head->content_length);
}

/* Whether `h` may be one of the four fields that llhttp acts upon, according to the length and
 * first letter of its name. llhttp would also treat Proxy-Connection as Connection, but that field
 * is in no standard (RFC 9112, 9.3), so llhttp never sees it. */
static bool decides(const struct weir_http_header *h)
{
	switch (h->name.n) {
	case sizeof("upgrade") - 1:
		return (h->name.p[0] | 0x20) == 'u';
	case sizeof("connection") - 1:
	case sizeof("content-length") - 1:
		return (h->name.p[0] | 0x20) == 'c';
	case sizeof("transfer-encoding") - 1:
		return (h->name.p[0] | 0x20) == 't';
	default:
		return false;
	}
}

/* Return the line of a field, including its CRLF. */
static struct weir_slice line_of(const struct weir_http_header *h)
{
	const char *end = h->value.p + h->value.n;

	while (*end != '\n')
		end++;
	return (struct weir_slice){h->name.p, (size_t)(end + 1 - h->name.p)};
}

/* Let llhttp parse the request line, the fields that it acts upon, and the empty line. If
 * `extension` is set, the method is one that is served but unknown to llhttp. The method passed to
 * llhttp is then POST, which may have a body and has no other effect on the parser. */
static llhttp_errno_t referee(
    llhttp_t *parser, const char *p, const struct http_head *head, bool extension)
{
	const char *end = p + head->n - 2,
		   *fields = head->n_headers ? head->headers[0].name.p : end;
	llhttp_errno_t rc = HPE_OK;

	if (extension) {
		rc = llhttp_execute(parser, "POST", 4);
		p = head->method.p + head->method.n;
	}
	if (rc == HPE_OK)
		rc = llhttp_execute(parser, p, (size_t)(fields - p));
	for (int i = 0; i < head->n_headers && rc == HPE_OK; i++) {
		if (WEIR_LIKELY(!decides(&head->headers[i])))
			continue;
		struct weir_slice line = line_of(&head->headers[i]);
		rc = llhttp_execute(parser, line.p, line.n);
	}
	return rc == HPE_OK ? llhttp_execute(parser, end, 2) : rc;
}

/* Whether llhttp rejected the request because of its method: the method is unknown, or belongs to
 * RTSP or ICE. The guard has already checked that the protocol is HTTP. */
static bool is_unknown(const llhttp_t *parser, llhttp_errno_t rc)
{
	return rc == HPE_INVALID_METHOD || rc == HPE_INVALID_CONSTANT ||
	       parser->method == HTTP_SOURCE;
}

WEIR_COLD static bool is_extension(const struct http_head *head)
{
	for (int i = 0; head->methods && i < head->methods->n; i++) {
		const char *method = head->methods->items[i];
		if (strlen(method) == head->method.n &&
		    memcmp(method, head->method.p, head->method.n) == 0)
			return true;
	}
	return false;
}

static enum guard_verdict ask_llhttp(const char *p, struct http_head *head)
{
	bool extension = false;
	llhttp_t parser;

	llhttp_init(&parser, HTTP_REQUEST, &settings);
	llhttp_errno_t rc = referee(&parser, p, head, false);
	if (WEIR_UNLIKELY(is_unknown(&parser, rc)) && is_extension(head)) {
		extension = true;
		llhttp_init(&parser, HTTP_REQUEST, &settings);
		rc = referee(&parser, p, head, true);
	}
	if (is_unknown(&parser, rc))
		return guard_refuse(head, 501, "the method is not known");
	/* The response to TRACE would show scripts the cookies and credentials of the request. */
	if (rc == HPE_PAUSED && parser.method == HTTP_TRACE)
		return guard_refuse(head, 501, "TRACE is not served");
	if (rc != HPE_PAUSED || !agree(&parser, head))
		return guard_refuse(head, 400, "the head is ambiguous");
	head->method_id = extension ? WEIR_HTTP_OTHER : method_of(parser.method);
	/* "close" takes precedence over "keep-alive" (RFC 9112, 9.3), but llhttp would keep the
	 * connection open. */
	head->keep_alive = !head->close && llhttp_should_keep_alive(&parser);
	head->upgrade = (parser.flags & F_UPGRADE) && (parser.flags & F_CONNECTION_UPGRADE);
	return GUARD_GOOD;
}

enum guard_verdict parse_answer(const char *p, size_t n, struct http_head *head)
{
	enum guard_verdict v = guard_answer(p, n, head);
	llhttp_t parser;

	if (v != GUARD_GOOD)
		return v;
	llhttp_init(&parser, HTTP_RESPONSE, &settings);
	if (referee(&parser, p, head, false) != HPE_PAUSED || !agree(&parser, head) ||
	    parser.status_code != head->code)
		return guard_refuse(head, 502, "the head is ambiguous");
	/* an HTTP/1.0 server that keeps connections open says so, but those that do are rare */
	head->keep_alive = head->minor > 0 && !head->close;
	return GUARD_GOOD;
}

/* Let llhttp parse a request line with `method`. Returns false if no request can have the method,
 * because it is too long, not a token, or CONNECT, which the guard refuses. */
static bool try_method(const char *method, llhttp_t *parser, llhttp_errno_t *rc)
{
	size_t n = strlen(method);

	if (n == 0 || n > GUARD_METHOD_MAX || guard_span(method, n, GUARD_TOKEN) != n ||
	    strcmp(method, "CONNECT") == 0)
		return false;
	llhttp_init(parser, HTTP_REQUEST, &settings);
	*rc = llhttp_execute(parser, method, n);
	if (*rc == HPE_OK)
		*rc = llhttp_execute(parser, " / HTTP/1.1\r\n", 13);
	return true;
}

bool parse_method_good(const char *method)
{
	llhttp_t parser;
	llhttp_errno_t rc;

	return try_method(method, &parser, &rc) && is_unknown(&parser, rc);
}

bool parse_method_served(const char *method)
{
	llhttp_t parser;
	llhttp_errno_t rc;

	return try_method(method, &parser, &rc) && !is_unknown(&parser, rc) &&
	       parser.method != HTTP_TRACE;
}

enum guard_verdict parse_head(const char *p, size_t n, struct http_head *head)
{
	enum guard_verdict v = guard_head(p, n, head);

	return v == GUARD_GOOD ? ask_llhttp(p, head) : v;
}
