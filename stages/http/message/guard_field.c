/* SPDX-License-Identifier: MIT */
/*
 * Checks the fields that determine the length and the destination of a message; see guard.h.
 *
 * Any value that two parsers could interpret differently is refused here, before a parser reads it.
 */
#include "http/message/guard.h"

#include <string.h>

/* Fields that must not be sent twice, since they have a single value (RFC 9110). Indexed by the
 * length of the name. If such a field is sent twice, some programs use the first value, some the
 * last and some both joined, so the request is ambiguous; nginx has refused it since 1.23. Fields
 * that determine framing are not listed here. Their own rules below refuse a second one with a
 * specific message. */
static const char *const once[][2] = {
    [5] = {"range"},
    [6] = {"origin"},
    [7] = {"referer"},
    [8] = {"if-range"},
    [10] = {"user-agent"},
    [12] = {"content-type", "max-forwards"},
    [13] = {"authorization", "content-range"},
    [17] = {"if-modified-since"},
    [19] = {"if-unmodified-since", "proxy-authorization"},
};

static enum guard_verdict other(const struct weir_http_header *field, struct http_head *head)
{
	size_t n = field->name.n;

	/* what an answer says of itself does not change what is done with it */
	if (head->answer)
		return GUARD_GOOD;
	if (n >= sizeof(once) / sizeof(once[0]))
		return GUARD_GOOD;
	for (size_t i = 0; i < 2 && once[n][i]; i++) {
		uint64_t bit = (uint64_t)1 << (2 * n + i);
		if (!guard_same(field->name.p, once[n][i], n))
			continue;
		if (head->seen & bit)
			return guard_refuse(
			    head, 400, "a field that allows one value appears twice");
		head->seen |= bit;
	}
	return GUARD_GOOD;
}

/* Whether a tab was trimmed before or after `v`, which has a ':' before it and a CR after it. Such
 * tabs are legal, but nginx and lighttpd treat them as part of the value, and so does llhttp with a
 * tab after the value. */
static bool tab_around(struct weir_slice v)
{
	const char *before = v.p - 1, *behind = v.p + v.n;

	while (*before == ' ')
		before--;
	while (*behind == ' ')
		behind++;
	return *before == '\t' || *behind == '\t';
}

static enum guard_verdict content_length(struct weir_slice v, struct http_head *head)
{
	uint64_t n = 0;

	if (head->has_length)
		return guard_refuse(head, 400, "duplicate Content-Length");
	if (v.n == 0 || v.n > GUARD_LENGTH_DIGITS || (v.n > 1 && v.p[0] == '0') || tab_around(v))
		return guard_refuse(head, 400, "Content-Length is malformed");
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return guard_refuse(head, 400, "Content-Length is malformed");
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	}
	head->has_length = true;
	head->content_length = n;
	return GUARD_GOOD;
}

static enum guard_verdict transfer_encoding(struct weir_slice v, struct http_head *head)
{
	if (head->chunked)
		return guard_refuse(head, 400, "duplicate Transfer-Encoding");
	if (!weir_slice_is(v, "chunked") || tab_around(v))
		return guard_refuse(head, 400, "Transfer-Encoding is not chunked");
	head->chunked = true;
	return GUARD_GOOD;
}

static enum guard_verdict host(struct weir_slice v, struct http_head *head)
{
	if (head->has_host)
		return guard_refuse(head, 400, "duplicate Host");
	if (!guard_authority(v))
		return guard_refuse(head, 400, "Host is malformed");
	head->has_host = true;
	if (head->absolute && !guard_same_authority(v, head->host, head->secure))
		return guard_refuse(head, 400, "Host differs from the host of the target");
	head->host = v;
	head->host_differs = guard_host_differs(v);
	return GUARD_GOOD;
}

static size_t spaces(struct weir_slice v, size_t i)
{
	while (i < v.n && (v.p[i] == ' ' || v.p[i] == '\t'))
		i++;
	return i;
}

/* The value is a list whose elements may be empty (RFC 9110, 5.6.1.2). A second Expect field is
 * refused, as in nginx. */
static enum guard_verdict expect(struct weir_slice v, struct http_head *head)
{
	if (head->expect_continue || head->expect_other)
		return guard_refuse(head, 400, "duplicate Expect");
	for (size_t i = spaces(v, 0), end; i < v.n; i = spaces(v, end + 1)) {
		const char *comma = memchr(v.p + i, ',', v.n - i);
		end = comma ? (size_t)(comma - v.p) : v.n;
		struct weir_slice one = {v.p + i, end - i};
		while (one.n > 0 && (one.p[one.n - 1] == ' ' || one.p[one.n - 1] == '\t'))
			one.n--;
		if (weir_slice_is(one, "100-continue"))
			head->expect_continue = true;
		else if (one.n > 0)
			head->expect_other = true;
	}
	return GUARD_GOOD;
}

/* Whether `option` is "close" or contains it; nginx and lighttpd treat both as a close. Closing the
 * connection is always allowed, whereas keeping it open is wrong if the client has requested a
 * close. */
static bool says_close(struct weir_slice option)
{
	for (size_t i = 0; i + 5 <= option.n; i++)
		if (guard_same(option.p + i, "close", 5))
			return true;
	return false;
}

/* The Connection field is part of framing, since it decides whether another request follows. The
 * value is a list of tokens, in which elements may be empty (RFC 9110, 5.6.1). Values such as
 * "close x" are refused, since some parsers treat them as "close" and others do not. The options
 * are parsed here as well as by llhttp, which does not recognise "close" followed by a tab. */
static enum guard_verdict connection(struct weir_slice v, struct http_head *head)
{
	for (size_t i = spaces(v, 0); i < v.n; i = spaces(v, i)) {
		struct weir_slice option = {v.p + i, guard_span(v.p + i, v.n - i, GUARD_TOKEN)};
		head->close |= says_close(option);
		i = spaces(v, i + option.n);
		if (i < v.n && v.p[i++] != ',')
			return guard_refuse(head, 400, "Connection is malformed");
	}
	return GUARD_GOOD;
}

enum guard_verdict guard_field(const struct weir_http_header *field, struct http_head *head)
{
	const struct weir_slice name = field->name, value = field->value;

#define IS(word) guard_same(name.p, word, sizeof(word) - 1)
	switch (name.n) {
	case 4:
		if (IS("host") && !head->answer)
			return host(value, head);
		break;
	case 6:
		if (IS("expect") && !head->answer)
			return expect(value, head);
		break;
	case 10:
		if (IS("connection"))
			return connection(value, head);
		break;
	case 14:
		if (IS("content-length"))
			return content_length(value, head);
		break;
	case 17:
		if (IS("transfer-encoding"))
			return transfer_encoding(value, head);
		break;
	default:
		break;
	}
#undef IS
	return other(field, head);
}

static bool method_without_body(struct weir_slice m)
{
	return (m.n == 3 && memcmp(m.p, "GET", 3) == 0) ||
	       (m.n == 4 && memcmp(m.p, "HEAD", 4) == 0) ||
	       (m.n == 6 && memcmp(m.p, "DELETE", 6) == 0);
}

enum guard_verdict guard_whole(struct http_head *head)
{
	if (head->chunked && head->has_length)
		return guard_refuse(head, 400, "Content-Length with Transfer-Encoding");
	if (head->chunked && head->minor == 0)
		return guard_refuse(head, 400, "Transfer-Encoding in HTTP/1.0");
	/* An HTTP/1.0 peer may not know that these methods can have a body, and may read the body
	 * as a request. HAProxy and lighttpd also refuse this. */
	if (head->minor == 0 && head->content_length > 0 && method_without_body(head->method))
		return guard_refuse(
		    head, 400, "an HTTP/1.0 request with this method cannot have a body");
	if (!head->has_host && head->minor == 1)
		return guard_refuse(head, 400, "Host is missing");
	if (head->minor == 0)
		head->expect_continue = head->expect_other = false; /* RFC 9110, 10.1.1 */
	if (head->expect_other)
		return guard_refuse(head, 417, "Expect allows only 100-continue");
	return GUARD_GOOD;
}
