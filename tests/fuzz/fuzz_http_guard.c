/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a request head. The verdict is the same for every prefix that is long enough to have
 * one, and guard_news never misses a byte that changes it. A good head follows the rules, as
 * checked by a second, simple parser. llhttp, to which the server passes only some lines, agrees on
 * the whole head.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llhttp.h>

#include "http/message/guard.h"
#include "http/message/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_guard: %s\n", what);
	abort();
}

/* Lines end in CR LF, HT is the only other control byte, and an empty line ends the head. */
static void check_lines(const char *p, size_t n)
{
	expect(n >= 4 && memcmp(p + n - 4, "\r\n\r\n", 4) == 0, "a good head has no empty line");
	for (size_t i = 0; i < n; i++) {
		uint8_t b = (uint8_t)p[i];
		expect(b != '\n' || (i > 0 && p[i - 1] == '\r'), "a lone LF is good");
		expect(b != '\r' || (i + 1 < n && p[i + 1] == '\n'), "a lone CR is good");
		expect(b >= 0x20 || b == '\t' || b == '\r' || b == '\n', "a control byte is good");
		expect(b != 0x7f, "DEL is good");
		if (i > 0 && p[i - 1] == '\n')
			expect(b != ' ' && b != '\t', "a folded line is good");
	}
}

static bool name_is(const struct weir_http_header *h, const char *name)
{
	return weir_slice_is(h->name, name);
}

/* A target contains only bytes that browsers send unescaped, and Connection contains only
 * tokens. */
static void check_values(const struct http_head *head)
{
	for (size_t i = 0; i < head->target.n; i++)
		expect(
		    !strchr("\"<># ", head->target.p[i]) && head->target.p[i] > 0, "a bad target");
	for (size_t i = 0; i < head->path.n; i++)
		expect(!strchr("\\^`{}?", head->path.p[i]), "a bad path");
	for (int i = 0; i < head->n_headers; i++) {
		const struct weir_http_header *h = &head->headers[i];
		for (size_t b = 0; weir_slice_is(h->name, "connection") && b < h->value.n; b++)
			expect(h->value.p[b] > 0 && !strchr("()<>@:;\\\"/[]?={}", h->value.p[b]),
			    "a bad Connection");
	}
}

/* Count the fields that decide on framing and routing, and check how many are allowed. */
static void check_fields(const struct http_head *head)
{
	int hosts = 0, lengths = 0, codings = 0, types = 0, ranges = 0;

	for (int i = 0; i < head->n_headers; i++) {
		const struct weir_http_header *h = &head->headers[i];
		hosts += name_is(h, "host");
		lengths += name_is(h, "content-length");
		codings += name_is(h, "transfer-encoding");
		types += name_is(h, "content-type");
		ranges += name_is(h, "range");
		expect(h->name.n > 0 && h->name.p[h->name.n] == ':', "a space before ':' is good");
	}
	expect(hosts <= 1 && lengths + codings <= 1, "two fields decide");
	expect(types <= 1 && ranges <= 1, "a field of one value is there twice");
	expect(hosts == 1 || head->minor == 0, "no Host is good");
	expect(codings == 0 || head->minor == 1, "a coding in HTTP/1.0 is good");
	expect(head->path.n > 0 ? head->path.p[0] == '/' || head->path.p[0] == '*'
				: head->absolute && head->path_differs,
	    "no path");
	expect(head->target.n <= WEIR_HTTP_TARGET_MAX && head->n <= WEIR_HTTP_HEAD_MAX, "too long");
	expect(head->content_length < 1000000000000000000ULL, "a length overflows");
}

/* The first verdict for growing prefixes, skipping those for which guard_news returns false. */
static enum guard_verdict grow(const char *p, size_t n, struct http_head *head)
{
	size_t seen = 0;

	for (size_t now = 1; now <= n; now++) {
		enum guard_verdict v;
		head->headers = headers;
		if (seen > 0 && !guard_news(p, seen, now)) {
			seen = now;
			continue;
		}
		v = guard_head(p, now, head);
		if (v != GUARD_MORE)
			return v;
		seen = now;
	}
	return GUARD_MORE;
}

static int stop_at_body(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

/* llhttp treats the field as Connection; parse_head does not pass it to llhttp. */
static bool has_proxy_connection(const struct http_head *head)
{
	for (int i = 0; i < head->n_headers; i++)
		if (weir_slice_is(head->headers[i].name, "proxy-connection"))
			return true;
	return false;
}

/* For a head that the guard accepts: parse_head agrees with llhttp, run on every byte of the
 * head. */
static void check_referee(const char *p, size_t n, const struct http_head *good)
{
	static const llhttp_settings_t settings = {.on_headers_complete = stop_at_body};
	struct http_head head = {.headers = headers};
	llhttp_t parser;

	llhttp_init(&parser, HTTP_REQUEST, &settings);
	llhttp_errno_t rc = llhttp_execute(&parser, p, good->n);
	bool whole = rc == HPE_PAUSED && parser.method != HTTP_TRACE &&
		     parser.method != HTTP_SOURCE && parser.http_major == 1 &&
		     parser.http_minor == good->minor &&
		     !(parser.flags & F_CHUNKED) == !good->chunked &&
		     !(parser.flags & F_CONTENT_LENGTH) == !good->has_length &&
		     (!good->has_length || parser.content_length == good->content_length);
	enum guard_verdict v = parse_head(p, n, &head);

	expect(whole == (v == GUARD_GOOD), "llhttp says something else of the whole head");
	if (!whole) {
		bool method = rc == HPE_INVALID_METHOD || rc == HPE_INVALID_CONSTANT ||
			      parser.method == HTTP_SOURCE ||
			      (rc == HPE_PAUSED && parser.method == HTTP_TRACE);
		expect(head.status == (method ? 501 : 400), "another status");
		return;
	}
	expect(has_proxy_connection(&head) ||
		   head.keep_alive == (!good->close && llhttp_should_keep_alive(&parser)),
	    "llhttp would keep another connection");
	expect((head.method_id == WEIR_HTTP_GET) == (parser.method == HTTP_GET) &&
		   (head.method_id == WEIR_HTTP_HEAD) == (parser.method == HTTP_HEAD),
	    "llhttp reads another method");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	struct http_head whole = {.headers = headers}, grown = {.headers = headers};
	size_t len = 0;
	int status = 0, rc;
	enum guard_verdict v;

	if (size > 20000)
		return 0;
	v = guard_head(p, size, &whole);
	rc = weir_http_guard(p, size, &len, &status);
	expect(rc == (v == GUARD_GOOD ? 1 : v == GUARD_MORE ? 0 : WEIR_EINVAL), "the calls differ");
	expect(v != GUARD_MORE || size < WEIR_HTTP_HEAD_MAX, "a full buffer without a verdict");
	if (v == GUARD_GOOD) {
		expect(len == whole.n && len <= size, "a wrong length");
		check_lines(p, len);
		check_fields(&whole);
		check_values(&whole);
		check_referee(p, size, &whole);
	}
	expect(grow(p, size, &grown) == v, "the verdict depends on the split");
	expect(v != GUARD_REFUSED || (grown.status == whole.status && status == whole.status &&
					 strcmp(grown.why, whole.why) == 0),
	    "the answer depends on the split");
	expect(v != GUARD_GOOD || grown.n == whole.n, "the length depends on the split");
	return 0;
}
