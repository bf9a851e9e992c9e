/* SPDX-License-Identifier: MIT */
/* llhttp as the referee behind the byte guard; see parse.h. */
#include "http/parse.h"

#include <llhttp.h>

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

enum guard_verdict parse_head(const char *p, size_t n, struct http_head *head)
{
	enum guard_verdict v = guard_head(p, n, head);
	llhttp_t parser;

	if (v != GUARD_GOOD)
		return v;
	llhttp_init(&parser, HTTP_REQUEST, &settings);
	llhttp_errno_t rc = llhttp_execute(&parser, p, head->n);
	/* A method that is none, or one of RTSP or ICE: the version is HTTP's, the guard has seen. */
	if (rc == HPE_INVALID_METHOD || rc == HPE_INVALID_CONSTANT || parser.method == HTTP_SOURCE)
		return guard_refuse(head, 501, "the method is not known");
	/* What is in a request (cookies, credentials) is not sent back to scripts, and a TRACE may
	 * have no body (RFC 9110, 9.3.8). */
	if (rc == HPE_PAUSED && parser.method == HTTP_TRACE)
		return guard_refuse(head, 501, "TRACE is not served");
	if (rc != HPE_PAUSED || !agree(&parser, head))
		return guard_refuse(head, 400, "the head is ambiguous");
	head->method_id = method_of(parser.method);
	/* Who says close means it, also beside keep-alive (RFC 9112, 9.3), where llhttp goes on. */
	head->keep_alive = !head->close && llhttp_should_keep_alive(&parser);
	return GUARD_GOOD;
}
