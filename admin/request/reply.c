/* SPDX-License-Identifier: MIT */
/* Builds replies; see reply.h. If even the text of a problem cannot be allocated, a static one is
 * sent. */
#include "reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/text/utf8.h"

static const char no_memory[] = "{\"type\": \"about:blank\", \"title\": \"Service Unavailable\", "
				"\"status\": 503, \"detail\": \"out of memory\"}\n";

void reply_static(struct reply *r, int status, const char *type, const char *body, size_t n)
{
	reply_fini(r);
	r->status = status;
	r->type = type;
	r->body = body;
	r->n = n;
}

void reply_text(struct reply *r, int status, const char *type, char *body, size_t n)
{
	if (!body) {
		reply_static(r, 503, "application/problem+json", no_memory, sizeof(no_memory) - 1);
		return;
	}
	reply_static(r, status, type, body, n);
	r->owned = body;
}

static void put_json(struct reply *r, int status, const char *type, json_t *json)
{
	char *body = json ? json_dumps(json, JSON_COMPACT | ADMIN_JSON_REALS) : NULL;

	json_decref(json);
	reply_text(r, status, type, body, body ? strlen(body) : 0);
}

void reply_json(struct reply *r, int status, json_t *json)
{
	put_json(r, status, "application/json", json);
}

/* Replace the bytes of incomplete UTF-8 characters by '?'. A message that quotes a value may have
 * cut it off in the middle of a character. */
static void keep_whole(char *text)
{
	while (*text) {
		size_t n = utf8_bytes(text);
		if (n == 0)
			*text = '?';
		text += n ? n : 1;
	}
}

void reply_problem(struct reply *r, int status, const char *fmt, ...)
{
	char detail[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);
	keep_whole(detail);
	put_json(r, status, "application/problem+json",
	    json_pack("{s:s, s:s, s:i, s:s}", "type", "about:blank", "title", reply_reason(status),
		"status", status, "detail", detail));
}

void reply_not_ready(struct reply *r, const char *reason, const char *stage, const char *detail)
{
	put_json(r, 503, "application/problem+json",
	    json_pack("{s:s, s:s, s:i, s:s, s:s, s:s?}", "type", "about:blank", "title",
		reply_reason(503), "status", 503, "detail", detail, "reason", reason, "stage",
		stage));
}

const char *reply_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} row[] = {
	    {200, "OK"},
	    {304, "Not Modified"},
	    {400, "Bad Request"},
	    {401, "Unauthorized"},
	    {403, "Forbidden"},
	    {404, "Not Found"},
	    {405, "Method Not Allowed"},
	    {408, "Request Timeout"},
	    {409, "Conflict"},
	    {413, "Content Too Large"},
	    {414, "URI Too Long"},
	    {415, "Unsupported Media Type"},
	    {417, "Expectation Failed"},
	    {421, "Misdirected Request"},
	    {422, "Unprocessable Content"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {503, "Service Unavailable"},
	    {505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (row[i].status == status)
			return row[i].reason;
	return "Error";
}

void reply_fini(struct reply *r)
{
	free(r->owned);
	explicit_bzero(r->cookie, sizeof(r->cookie));
	*r = (struct reply){0};
}

/* With these fields, the page loads only its own scripts and styles and connects to no other site.
 * No other site may frame or read it, and links from it carry no referrer. Each connection serves
 * only one request, so nothing can follow a response. */
const struct reply_field reply_fields[] = {
    {"Connection", "close"},
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy",
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {0},
};
