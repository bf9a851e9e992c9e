/* SPDX-License-Identifier: MIT */
/*
 * Formats the lines of access_log in four formats; see access_log.h.
 *
 *   logfmt    ts=2026-01-02T03:04:05.678Z client=192.0.2.1 method="GET" target="/" status=200
 *             bytes=6 us=113 class=default outcome=ok host="example.org" agent="curl/7.88.1"
 *             also path="/" after the target if the normal spelling of the path differs from it
 *             (normal_path.h), trace=<32 hex digits> if the request belongs to a trace, and
 *             share=0.01 if it was sampled
 *   json      {"ts":"2026-01-02T03:04:05.678Z","client":"192.0.2.1", ...}: the same fields
 *   common    192.0.2.1 - - [02/Jan/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 6
 *   combined  as common, followed by "referer" "user agent"
 */
#include "http/request/access_log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/trace.h>

#define NS_PER_S 1000000000LL

/* Longest escape, in JSON: two backslashes, an x and two hex digits. */
#define ESCAPE_MAX 5

/* Maximum bytes of a line apart from quoted texts: names, numbers, addresses, and words of the
 * server. */
#define REST_BYTES 900
_Static_assert(
    ACCESS_ESCAPED_MAX *(32 + ACCESS_TEXT_MAX + 2 * 256) + REST_BYTES < ACCESS_LINE_BYTES &&
	ACCESS_ESCAPED_MAX * (32 + ACCESS_TEXT_MAX + 128 + 256) + REST_BYTES < ACCESS_LINE_BYTES,
    "the longest line must be shorter than ACCESS_LINE_BYTES, in each format");

static size_t put_escape(char *out, uint8_t b, bool json)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	out[n++] = '\\';
	if (b == '"') {
		out[n++] = '"';
		return n;
	}
	if (json) /* in JSON the backslash itself must be escaped */
		out[n++] = '\\';
	if (b == '\\') {
		out[n++] = '\\';
		if (json)
			out[n++] = '\\';
		return n;
	}
	out[n++] = 'x';
	out[n++] = hex[b >> 4];
	out[n++] = hex[b & 15];
	return n;
}

size_t access_quote(char *out, size_t n, struct weir_slice s, size_t most, bool json)
{
	size_t end = n + ACCESS_ESCAPED_MAX * most, i = 0;

	out[n++] = '"';
	for (; i < s.n && i < most && n + ESCAPE_MAX <= end; i++) {
		uint8_t b = (uint8_t)s.p[i];
		if (b == '"' || b == '\\' || b < 0x20 || b >= 0x7f)
			n += put_escape(out + n, b, json);
		else
			out[n++] = (char)b;
	}
	if (i < s.n) {
		memcpy(out + n, "...", 3);
		n += 3;
	}
	out[n++] = '"';
	return n;
}

/* ---- name and value ---- */

struct pairs {
	char *out;
	size_t n;
	bool json;
};

static void put_name(struct pairs *p, const char *name)
{
	const char *before = p->n == 0 ? (p->json ? "{" : "") : p->json ? "," : " ";

	p->n += (size_t)sprintf(p->out + p->n, p->json ? "%s\"%s\":" : "%s%s=", before, name);
}

static void pair_text(struct pairs *p, const char *name, struct weir_slice s, size_t most)
{
	put_name(p, name);
	p->n = access_quote(p->out, p->n, s, most, p->json);
}

/* Add a word of at most 200 bytes that needs no escapes and, in logfmt, no quotes. */
static void pair_word(struct pairs *p, const char *name, struct weir_slice s)
{
	put_name(p, name);
	p->n += (size_t)sprintf(p->out + p->n, p->json ? "\"%.*s\"" : "%.*s", (int)s.n, s.p);
}

static void pair_number(struct pairs *p, const char *name, int64_t v)
{
	put_name(p, name);
	p->n += (size_t)sprintf(p->out + p->n, "%lld", (long long)v);
}

static struct weir_slice word(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

static void pair_trace(struct pairs *p, const struct weir_http_request *req)
{
	char text[WEIR_TRACE_ID_BYTES];
	struct weir_trace trace;

	if (!weir_event_traced(&req->ev, &trace))
		return;
	weir_trace_id_print(&trace, text);
	pair_word(p, "trace", word(text));
}

/* Whether the path is spelled as in the target that was sent. */
static bool path_as_sent(const struct weir_http_request *req)
{
	const struct weir_slice path = req->path, target = req->target;

	return target.n >= path.n && (path.n == 0 || memcmp(target.p, path.p, path.n) == 0) &&
	       (target.n == path.n || target.p[path.n] == '?' || path.n == 0);
}

/* Add the target as sent. If stages see another spelling of its path, add that spelling, too. */
static void pair_target(struct pairs *p, const struct weir_http_request *req)
{
	if (path_as_sent(req)) {
		pair_text(p, "target", req->target, ACCESS_TEXT_MAX);
		return;
	}
	pair_text(p, "target", req->target, ACCESS_TEXT_MAX / 2);
	pair_text(p, "path", req->path, ACCESS_TEXT_MAX / 2);
}

static size_t pairs_line(const struct access_line *l, char *out, bool json)
{
	const struct weir_http_request *req = l->req;
	struct pairs p = {.out = out, .json = json};
	time_t second = l->wall_ns / NS_PER_S;
	char ts[80];
	struct tm tm;

	gmtime_r(&second, &tm);
	snprintf(ts, sizeof(ts), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)(l->wall_ns % NS_PER_S / 1000000));
	pair_word(&p, "ts", word(ts));
	pair_word(&p, "client", l->client);
	pair_text(&p, "method", req->method_text, 32);
	pair_target(&p, req);
	pair_number(&p, "status", req->res.status);
	pair_number(&p, "bytes", l->bytes);
	pair_number(&p, "us", l->took_ns / 1000);
	pair_word(&p, "class", word(l->class_name));
	pair_word(&p, "outcome",
	    word(l->torn     ? "torn"
		 : l->handed ? "handed"
			     : weir_error_word(l->outcome)));
	pair_text(&p, "host", req->host, 128);
	pair_text(&p, "agent", weir_http_header(req, "user-agent"), 256);
	pair_trace(&p, req);
	if (l->share < 1) {
		put_name(&p, "share");
		p.n += (size_t)sprintf(out + p.n, "%.6g", l->share);
	}
	if (json)
		out[p.n++] = '}';
	out[p.n++] = '\n';
	return p.n;
}

/* ---- common and combined ---- */

/* Append the request line as sent, quoted as one text. */
static size_t quote_request_line(char *out, size_t n, const struct weir_http_request *req)
{
	n = access_quote(out, n, req->method_text, 32, false) - 1;
	size_t target = n;
	n = access_quote(out, n, req->target, ACCESS_TEXT_MAX, false) - 1;
	out[target] = ' '; /* overwrite the opening quote of the target */
	memcpy(out + n, req->minor == 0 ? " HTTP/1.0\"" : " HTTP/1.1\"", 10);
	return n + 10;
}

static size_t quote_field(char *out, size_t n, struct weir_slice s)
{
	out[n++] = ' ';
	return access_quote(out, n, s.p ? s : word("-"), 256, false);
}

static size_t common_line(const struct access_line *l, char *out, bool combined)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const struct weir_http_request *req = l->req;
	time_t second = l->wall_ns / NS_PER_S;
	struct tm tm;
	size_t n;

	gmtime_r(&second, &tm);
	n = (size_t)sprintf(out, "%.*s - - [%02d/%.3s/%04d:%02d:%02d:%02d +0000] ",
	    (int)l->client.n, l->client.p, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
	    tm.tm_hour, tm.tm_min, tm.tm_sec);
	n = quote_request_line(out, n, req);
	n += (size_t)sprintf(out + n, " %d %lld", req->res.status, (long long)l->bytes);
	if (combined) {
		n = quote_field(out, n, weir_http_header(req, "referer"));
		n = quote_field(out, n, weir_http_header(req, "user-agent"));
	}
	out[n++] = '\n';
	return n;
}

size_t access_line(enum access_format format, const struct access_line *l, char *out)
{
	if (format == ACCESS_COMMON || format == ACCESS_COMBINED)
		return common_line(l, out, format == ACCESS_COMBINED);
	return pairs_line(l, out, format == ACCESS_JSON);
}
