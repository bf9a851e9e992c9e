/* SPDX-License-Identifier: MIT */
/*
 * Internals of the byte guard: its rules, and the slices of a good head.
 *
 * Refused, all with 400 unless another status is named:
 *   bytes     lone CR, lone LF, NUL and every other control byte but HT (HT only in values)
 *   line 1    anything but METHOD SP TARGET SP HTTP/d.d: HTTP/0.9, several spaces; versions other
 *             than 1.0 and 1.1 (505); more than one empty line before it
 *   target    not origin-form, absolute-form ("http:", over TLS "https:"; no user, host and port
 *             equal to those of Host) or, for OPTIONS only, "*"; CONNECT; a byte that no client
 *             sends unescaped (GUARD_PATH, GUARD_QUERY); in a path '%' without two hex digits
 *             after it; "%00"; a path that leads above the root; more than 8 KiB (414)
 *   fields    obs-fold, no name, a name that is not a token, space before ':'; more than 100, or a
 *             head of more than 16 KiB (431); a second field where one is allowed (guard_field.c)
 *   length    Content-Length that is empty, a list, not pure digits, longer than 18 digits, or has
 *             leading zeros; with Transfer-Encoding; a body in a GET, HEAD or DELETE of HTTP/1.0
 *   coding    Transfer-Encoding twice, in HTTP/1.0, or anything but `chunked`
 *   host      missing in HTTP/1.1; twice; empty; not a name or address with an optional port
 *   tabs      around the value of Content-Length or Transfer-Encoding
 *   other     Connection that is not a list of tokens; Expect twice; in HTTP/1.1, Expect with
 *             anything but 100-continue (417)
 *
 * Every verdict depends only on the bytes up to the fault (a line is checked when it is complete),
 * so it does not depend on how the bytes were split. llhttp must then agree: see parse.h.
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
#include <weir/knob.h>

/** Maximum number of digits in a Content-Length: any such number fits an int64_t. */
#define GUARD_LENGTH_DIGITS 18

/** Space for the method in the request line if the target has its maximum length. 32 bytes is a
 * guess: the longest registered method, UPDATEREDIRECTREF, has 17. The guard accepts a longer
 * method if the whole line is within its limit; llhttp then rejects the method as unknown (501). */
#define GUARD_METHOD_MAX 32

/** Maximum length of a host name in bytes: the limit of DNS (RFC 1035, 2.3.4). */
#define GUARD_NAME_MAX 255

/** The contents of a head. Slices point into the bytes that were checked, or at static text. */
struct http_head {
	/* set by the caller, with space for WEIR_HTTP_HEADERS_MAX */
	struct weir_http_header *headers;
	bool secure; /* set by the caller: the head arrived over TLS */
	bool answer; /* set by guard_answer: the head is that of an answer */
	/* set by the caller: methods served in addition to those of llhttp; may be NULL */
	const struct weir_strings *methods;
	int n_headers;
	/* length in bytes, including an empty line before the head and the one that ends it */
	size_t n;
	struct weir_slice method, target, path, query, host; /* as sent */
	uint8_t minor;
	uint16_t code;     /* of an answer: its status, 100 to 599 */
	bool path_differs; /* `path` differs from its normal spelling (normal_path.h) */
	bool host_differs; /* `host` has capitals, or ends in a dot */
	bool chunked, has_length, has_host, absolute, expect_continue, expect_other, close;
	uint64_t content_length;
	uint64_t seen;   /* bits of the fields seen that may occur only once: guard_field.c */
	int status;      /* if refused */
	const char *why; /* if refused: static text for the response's body */
	/* set by parse_head */
	enum weir_http_method method_id;
	bool keep_alive;
	bool upgrade; /* Connection has `upgrade`, and there is a field Upgrade */
};

enum guard_verdict { GUARD_MORE, GUARD_GOOD, GUARD_REFUSED };

/** Check the head at p[0..n), and fill `head`, whose `headers`, `secure` and `methods` must be
 * set. */
enum guard_verdict guard_head(const char *p, size_t n, struct http_head *head);

/**
 * Check the head of an answer at p[0..n) in the same way; `headers` must be set. The rules for lines,
 * fields, lengths and codings are those for requests. The first line is HTTP/1.0 or HTTP/1.1, SP, three
 * digits from 100 to 599, and SP with any text, which may be missing. No empty line precedes it. Sets
 * `code`; target, path, query and host are unused. guard_news applies.
 */
enum guard_verdict guard_answer(const char *p, size_t n, struct http_head *head);

/** Whether guard_head could return anything but GUARD_MORE for p[0..n), given that it returned
 * GUARD_MORE for p[0..seen). */
bool guard_news(const char *p, size_t seen, size_t n);

/* ---- parts, each in its own file ---- */

/** Refuse the head: set its status and why. */
static inline enum guard_verdict guard_refuse(struct http_head *head, int status, const char *why)
{
	head->status = status;
	head->why = why;
	return GUARD_REFUSED;
}

/** Set path_differs, by comparing head->path with its normal spelling; refuse a path that leads
 * above the root with 400. */
enum guard_verdict guard_path(struct http_head *head);

/** Check a complete request line. `line` excludes its CRLF, which must follow in memory. */
enum guard_verdict guard_request_line(struct weir_slice line, struct http_head *head);

/** Check a field that determines framing or routing, or that may occur only once. Returns
 * GUARD_GOOD for all others. */
enum guard_verdict guard_field(const struct weir_http_header *field, struct http_head *head);

/** Check the first line of an answer, which must be followed by its CRLF in memory. */
enum guard_verdict guard_status_line(struct weir_slice line, struct http_head *head);

/** Perform the checks of an answer that need all fields. */
enum guard_verdict guard_whole_answer(struct http_head *head);

/** Perform the checks that need all fields. */
enum guard_verdict guard_whole(struct http_head *head);

/** Whether `s` is a host or address with an optional port. The byte after `s` must be readable, and
 * must not be one that may occur in a name. */
bool guard_authority(struct weir_slice s);

/** Whether the authorities `a` and `b` name the same host and port. Names are compared without
 * case; a missing or empty port means the default port of the scheme. */
bool guard_same_authority(struct weir_slice a, struct weir_slice b, bool secure);

/** Whether `host`, a valid authority, differs from its normal spelling, which request_fill
 * writes. */
bool guard_host_differs(struct weir_slice host);

enum guard_byte {
	GUARD_TOKEN = 1, /* tchar */
	GUARD_HOST = 2,  /* unreserved */
	GUARD_PATH = 4,  /* bytes of a target before its '?' */
	GUARD_QUERY = 8, /* bytes of a target after its '?' */
	GUARD_HEX = 16,
	GUARD_ESCAPE = 32, /* '%' */
	GUARD_SLASH = 64,  /* '/' */
	GUARD_DOT = 128,   /* '/' and '.': one of them after a '/' may make the path not normal */
};

/* GUARD_PATH and GUARD_QUERY are the bytes that RFC 3986 allows in a path and in a query; a query
 * may contain '?'. A few others are added, since browsers send them unescaped (the encode sets of
 * the WHATWG's URL standard): | [ ] in both, and \ ^ ` { } in a query. */

extern const uint8_t guard_bytes[256];

static inline bool guard_is(char c, unsigned kinds)
{
	return (guard_bytes[(uint8_t)c] & kinds) != 0;
}

/** The value of a hex digit. */
static inline unsigned guard_hex(char c)
{
	return ((uint8_t)c & 15) + ((uint8_t)c >> 6) * 9U;
}

/** Return how many bytes at the start of p[0..n) are of one of `kinds`. */
static inline size_t guard_span(const char *p, size_t n, unsigned kinds)
{
	size_t i = 0;

	while (i < n && guard_is(p[i], kinds))
		i++;
	return i;
}

/** Like guard_span, but without a length: a byte of another kind must follow, such as the CR at the
 * end of a line. */
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

/** Whether the token s[0..n) is the word `lower[n]`, n >= 4, of lowercase letters and '-', in any
 * case. Compares several bytes at a time, with the bit 0x20 set in each: this bit distinguishes
 * lowercase letters from capitals. Apart from capitals, setting it could only turn control bytes
 * into a letter or '-', and no token has control bytes. */
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
