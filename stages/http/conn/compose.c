/* SPDX-License-Identifier: MIT */
/*
 * Composes the head of every response: compose_head for the response to a request, compose_bare for
 * a refusal for which there is no memory or no connection. Only "100 Continue" is written elsewhere
 * (write_continue.c). "Server" and "Date" stay the same for a second: they are composed once and
 * copied.
 *
 * The wall clock is read once per second and I/O thread. The names of days and months are those of
 * RFC 9110 in every locale.
 */
#include "http/conn/conn.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "http/message/put.h"
#include "http/message/status.h"
#include "http/request/transfer.h"

#define NS_PER_S 1000000000LL

/* Maximum bytes of a head without the stage's fields: status line, stamp, length, connection. */
#define FIXED_BYTES (64 + SERVER_STAMP_MAX + 96)

WEIR_COLD static void stamp(struct http_io *io)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	int n = snprintf(io->stamp.text, sizeof(io->stamp.text),
	    "%sDate: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n", io->srv->server_field,
	    days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
	    tm.tm_hour, tm.tm_min, tm.tm_sec);
	WEIR_ASSERT(n > 0 && (size_t)n < sizeof(io->stamp.text));
	io->stamp.n = (size_t)n;
	io->stamp.until_ns = weir_loop_now_ns(io->net.loop) + NS_PER_S - ts.tv_nsec;
}

static char *put_status(char *at, int code)
{
	const struct status *s = status_find(code);

	if (s)
		return put(at, s->line.p, s->line.n);
	at = put(at, "HTTP/1.1 ", 9);
	at = put_number(at, (uint64_t)code);
	return put(at, " Unknown\r\n", 10);
}

static char *put_length(char *at, int64_t n)
{
	at = put_number(PUT(at, "Content-Length: "), (uint64_t)n);
	return PUT(at, "\r\n");
}

bool compose_has_body(const struct http_req *r)
{
	return r->pub.method != WEIR_HTTP_HEAD && !r->pub.res.no_length;
}

size_t compose_head(struct http_io *io, struct http_req *r, bool close, char *out, size_t room)
{
	const struct weir_http_request *req = &r->pub;
	const struct weir_http_response *res = &req->res;
	char *at = out;

	if (FIXED_BYTES + res->fields.n + req->n_fields > room)
		return 0;
	if (weir_loop_now_ns(io->net.loop) >= io->stamp.until_ns)
		stamp(io);
	at = put_status(at, res->status);
	at = put(at, io->stamp.text, io->stamp.n);
#ifndef NDEBUG
	/* malformed fields would be a bug in the server or in a stage, and would split responses */
	WEIR_ASSERT(weir_http_fields_good(res->fields));
#endif
	if (res->fields.n > 0)
		at = put(at, res->fields.p, res->fields.n);
	at = put(at, req->fields, req->n_fields);
	if (WEIR_UNLIKELY(res->streamed)) {
		if (r->known_transfer->chunked)
			at = PUT(at, "Transfer-Encoding: chunked\r\n");
		else if (r->known_transfer->length >= 0 && !res->no_length)
			at = put_length(at, r->known_transfer->length);
	} else if (!res->no_length) {
		at = put_length(at, weir_http_body_bytes(res));
	}
	if (close)
		at = PUT(at, "Connection: close\r\n");
	else if (req->minor == 0)
		at = PUT(at, "Connection: keep-alive\r\n");
	at = PUT(at, "\r\n");
	return (size_t)(at - out);
}

size_t compose_bare(int status, int retry_after_s, char out[COMPOSE_BARE_MAX])
{
	char *at = put_status(out, status);

	if (retry_after_s > 0) {
		at = put_number(PUT(at, "Retry-After: "), (uint64_t)retry_after_s);
		at = PUT(at, "\r\n");
	}
	at = PUT(at, "Content-Length: 0\r\nConnection: close\r\n\r\n");
	return (size_t)(at - out);
}
