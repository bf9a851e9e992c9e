/* SPDX-License-Identifier: MIT */
/*
 * The byte guard's inside: the rules, and what a good head says, as slices.
 *
 * Refused, all with 400 unless another status is named:
 *   bytes     lone CR, lone LF, NUL and every other control byte but HT (HT only in values)
 *   line 1    anything but METHOD SP TARGET SP HTTP/d.d: HTTP/0.9, several spaces; versions other
 *             than 1.0 and 1.1 (505); more than one empty line in front of it
 *   target    not origin-form, absolute-form ("http:", over TLS "https:"; no user, authority equal to Host) or,
 *             for OPTIONS alone, "*"; CONNECT; a byte that no client sends unescaped (GUARD_PATH,
 *             GUARD_QUERY); '%' without two hex digits behind it; "%00"; more than 8 KiB (414)
 *   fields    obs-fold, no name, a name that is no token, space before ':'; more than 100, or a
 *             head of more than 16 KiB (431); twice what may be there once (guard_field.c)
 *   length    Content-Length listed, empty, not pure digits, more than 18 digits, with leading
 *             zeros; with Transfer-Encoding; a body in a GET, HEAD or DELETE of HTTP/1.0
 *   coding    Transfer-Encoding twice, in HTTP/1.0, or anything but `chunked`
 *   host      missing in HTTP/1.1; twice; empty; not a name or address with an optional port
 *   tabs      beside a length or coding
 *   other     Connection that is no list of tokens; Expect twice; anything but 100-continue in it
 *             (417), in HTTP/1.1
 *
 * Every verdict depends only on the bytes up to the fault (a line is judged when it is complete),
 * so it is the same however the bytes were split. llhttp then has to agree: see parse.h.
 */
#ifndef WEIR_HTTP_GUARD_INTERNAL_H
#define WEIR_HTTP_GUARD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/event.h>
#include <weir/http.h>
#include <weir/http_guard.h>

/** Digits a Content-Length may have: fits int64 without a check. */
#define GUARD_LENGTH_DIGITS 18

/** Bytes of a method beside the largest target: a guess; the longest registered one,
 * UPDATEREDIRECTREF, has 17. A longer one is good to the guard when its line is: it is not known,
 * which is llhttp's to say (501). */
#define GUARD_METHOD_MAX 32

/** Bytes a host name may have: what DNS can carry (RFC 1035, 2.3.4). */
#define GUARD_NAME_MAX 255

/** What a head says; slices point into the bytes that were guarded, or at static text. */
struct http_head {
	struct weir_http_header *headers; /* the caller's, room for WEIR_HTTP_HEADERS_MAX */
	bool secure;                      /* the caller's: it came over TLS */
	int n_headers;
	size_t n; /* bytes of the head, with an empty line in front and the one behind */
	struct weir_slice method, target, path, query, host;
	uint8_t minor;
	bool chunked, has_length, has_host, absolute, expect_continue, expect_other, close;
	uint64_t content_length;
	uint64_t seen;   /* fields that may be there once: guard_field.c */
	int status;      /* when refused */
	const char *why; /* likewise: static, for the answer's body */
	/* set by parse_head */
	enum weir_http_method method_id;
	bool keep_alive;
};

enum guard_verdict { GUARD_MORE, GUARD_GOOD, GUARD_REFUSED };

/** Judge the head at p[0..n); fills `head`, whose `headers` and `secure` the caller has set. */
enum guard_verdict guard_head(const char *p, size_t n, struct http_head *head);

/** After guard_head said MORE about p[0..seen): can it say anything else about p[0..n)? */
bool guard_news(const char *p, size_t seen, size_t n);

/* ---- parts, in files of their own ---- */

/** Refuse: sets status and why. */
static inline enum guard_verdict guard_refuse(struct http_head *head, int status, const char *why)
{
	head->status = status;
	head->why = why;
	return GUARD_REFUSED;
}

/** Judge a complete request line (without its CRLF, which is there). */
enum guard_verdict guard_request_line(struct weir_slice line, struct http_head *head);

/** Judge a field that decides framing or routing; GOOD for all others. */
enum guard_verdict guard_field(const struct weir_http_header *field, struct http_head *head);

/** Judge what only the whole head shows. */
enum guard_verdict guard_whole(struct http_head *head);

/** Is `s` a host or address with an optional port? Behind it is a byte that no name has. */
bool guard_authority(struct weir_slice s);

enum guard_byte {
	GUARD_TOKEN = 1, /* tchar */
	GUARD_HOST = 2,  /* unreserved */
	GUARD_PATH = 4,  /* what a target has in front of its '?' */
	GUARD_QUERY = 8, /* and behind it */
	GUARD_HEX = 16,
	GUARD_ESCAPE = 32, /* '%' */
};

/* The two are RFC 3986's and the few bytes that it forbids but browsers send unescaped (the encode
 * sets of the WHATWG's URL standard): | [ ] anywhere, and \ ^ ` { } and '?' itself in a query. */

extern const uint8_t guard_bytes[256];

static inline bool guard_is(char c, unsigned kinds)
{
	return (guard_bytes[(uint8_t)c] & kinds) != 0;
}

/** Bytes at the start of p[0..n) that are of one of `kinds`. */
static inline size_t guard_span(const char *p, size_t n, unsigned kinds)
{
	size_t i = 0;

	while (i < n && guard_is(p[i], kinds))
		i++;
	return i;
}

/** As guard_span, where a byte of another kind is behind them for sure: a line ends in CR. */
static inline size_t guard_run(const char *p, unsigned kinds)
{
	size_t i = 0;

	while (guard_is(p[i], kinds))
		i++;
	return i;
}

static inline uint64_t guard_fold8(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return x | 0x2020202020202020ULL;
}

static inline uint32_t guard_fold4(const char *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof(x));
	return x | 0x20202020U;
}

/** Is the token s[0..n) the word `lower[n]`, n >= 4, of small letters and '-', in whatever case? Words at a time: 0x20 is what
 * tells small letters from large ones, and beside them only control bytes, which a token has none of, become a letter or '-'. */
static inline bool guard_same(const char *s, const char *lower, size_t n)
{
	size_t i = 0;

	if (n < 8)
		return guard_fold4(s) == guard_fold4(lower) &&
		       guard_fold4(s + n - 4) == guard_fold4(lower + n - 4);
	for (; i + 8 < n; i += 8)
		if (guard_fold8(s + i) != guard_fold8(lower + i))
			return false;
	return guard_fold8(s + n - 8) == guard_fold8(lower + n - 8);
}

#endif
