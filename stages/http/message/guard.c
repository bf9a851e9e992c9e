/* SPDX-License-Identifier: MIT */
/*
 * Checks the lines and fields of a head; see guard.h for the rules and weir/http_guard.h for the
 * contract.
 *
 * To find the end of a line, the guard searches for the first byte that is not text, sixteen or
 * eight bytes at a time. That byte must be a CR, followed by an LF. The search also finds every
 * control byte in the head. A second pass checks only field names, which must consist of token
 * bytes. The guard checks a size limit before it examines any byte beyond it, so that verdicts do
 * not depend on how the bytes were split.
 */
#include "http/message/guard.h"

#include <string.h>

#include "text/ows.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* METHOD SP TARGET SP VERSION, with the longest target. */
#define REQUEST_LINE_MAX (GUARD_METHOD_MAX + 1 + WEIR_HTTP_TARGET_MAX + 1 + 8)

#define T GUARD_TOKEN
#define H GUARD_HOST
#define P (GUARD_PATH | GUARD_QUERY)
#define Q GUARD_QUERY
#define X GUARD_HEX
#define E GUARD_ESCAPE
#define S GUARD_SLASH
#define D GUARD_DOT

const uint8_t guard_bytes[256] = {
    ['!'] = T | P,
    ['#'] = T,
    ['$'] = T | P,
    ['%'] = T | P | E,
    ['&'] = T | P,
    ['\''] = T | P,
    ['('] = P,
    [')'] = P,
    ['*'] = T | P,
    ['+'] = T | P,
    [','] = P,
    ['-'] = T | H | P,
    ['.'] = T | H | P | D,
    ['/'] = P | S | D,
    ['0' ... '9'] = T | H | P | X,
    [':'] = P,
    [';'] = P,
    ['='] = P,
    ['?'] = Q,
    ['@'] = P,
    ['A' ... 'F'] = T | H | P | X,
    ['G' ... 'Z'] = T | H | P,
    ['['] = P,
    ['\\'] = Q,
    [']'] = P,
    ['^'] = T | Q,
    ['_'] = T | H | P,
    ['`'] = T | Q,
    ['a' ... 'f'] = T | H | P | X,
    ['g' ... 'z'] = T | H | P,
    ['{'] = Q,
    ['|'] = T | P,
    ['}'] = Q,
    ['~'] = T | H | P,
};

#undef T
#undef H
#undef P
#undef Q
#undef X
#undef E
#undef S
#undef D

static bool is_text(char c)
{
	uint8_t b = (uint8_t)c;

	return (b >= 0x20 && b != 0x7f) || b == '\t';
}

/* Of the eight bytes at `p`, mark those below 0x20 or equal to 0x7f by their top bits. The lowest
 * mark is exact; a borrow may add marks above it. */
static uint64_t marks(const char *p)
{
	const uint64_t ones = 0x0101010101010101ULL, high = ones << 7;
	uint64_t x, del;

	memcpy(&x, p, sizeof(x));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	del = x ^ (ones * 0x7f);
	return (((x - ones * 0x20) & ~x) | ((del - ones) & ~del)) & high;
}

#ifdef __SSE2__
/* Like marks, for sixteen bytes: the result has one bit per byte, and all bits are exact. */
static unsigned marks16(const char *p)
{
	__m128i x = _mm_loadu_si128((const void *)p);
	__m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1f)), x);

	return (unsigned)_mm_movemask_epi8(
	    _mm_or_si128(low, _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f))));
}
#endif

/* Return the first byte of [p, end) that is not text (visible, space, HT or above ASCII), or `end`
 * if all bytes are text. */
static const char *line_end(const char *p, const char *end)
{
#ifdef __SSE2__
	while (end - p >= 16) {
		unsigned m = marks16(p);
		if (m == 0) {
			p += 16;
			continue;
		}
		p += __builtin_ctz(m);
		if (*p != '\t')
			return p;
		p++;
	}
#endif
	while (end - p >= 8) {
		uint64_t m = marks(p);
		if (m == 0) {
			p += 8;
			continue;
		}
		p += __builtin_ctzll(m) / 8;
		if (*p != '\t')
			return p;
		p++;
	}
	while (p < end && is_text(*p))
		p++;
	return p;
}

/* Check the end of a line at `stop`. */
static enum guard_verdict judge_end(const char *stop, const char *end, struct http_head *head)
{
	if (WEIR_LIKELY(end - stop >= 2 && stop[0] == '\r' && stop[1] == '\n'))
		return GUARD_GOOD;
	if (stop == end)
		return GUARD_MORE;
	if (*stop == '\n')
		return guard_refuse(head, 400, "a line ends without CR");
	if (*stop != '\r')
		return guard_refuse(head, 400, "a control byte");
	return stop + 1 == end ? GUARD_MORE : guard_refuse(head, 400, "a CR without LF");
}

/* Skip an empty line, of which one is allowed before the request line (RFC 9112, 2.2). */
static enum guard_verdict skip_empty_line(const char **at, const char *end, struct http_head *head)
{
	enum guard_verdict v;

	if (*at < end && **at != '\r')
		return GUARD_GOOD;
	v = judge_end(*at, end, head);
	if (v == GUARD_GOOD)
		*at += 2;
	return v;
}

/* Refuse a request line that is too long. If it contains no space up to the limit, it is malformed,
 * since no method is that long. */
static WEIR_COLD enum guard_verdict long_line(const char *line, struct http_head *head)
{
	if (!memchr(line, ' ', REQUEST_LINE_MAX))
		return guard_refuse(head, 400, "the request line is malformed");
	return guard_refuse(head, 414, "the request line is too long");
}

static enum guard_verdict answer_line(const char **at, const char *end, struct http_head *head)
{
	const char *stop;
	enum guard_verdict v;

	if (*at < end && **at != 'H')
		return guard_refuse(head, 502, "the status line is malformed");
	stop = line_end(*at, end);
	if (stop - *at > REQUEST_LINE_MAX)
		return guard_refuse(head, 502, "the status line is too long");
	v = judge_end(stop, end, head);
	if (v != GUARD_GOOD)
		return v;
	v = guard_status_line((struct weir_slice){*at, (size_t)(stop - *at)}, head);
	*at = stop + 2;
	return v;
}

static enum guard_verdict first_line(const char **at, const char *end, struct http_head *head)
{
	const char *stop;
	enum guard_verdict v;

	/* Refuse a wrong first byte immediately. A connection that sends noise without line ends
	 * would otherwise stay open until its time-out. */
	if (*at < end && !guard_is(**at, GUARD_TOKEN))
		return guard_refuse(head, 400, "the request line is malformed");
	stop = line_end(*at, end);
	if (stop - *at > REQUEST_LINE_MAX)
		return long_line(*at, head);
	v = judge_end(stop, end, head);
	if (v != GUARD_GOOD)
		return v;
	v = guard_request_line((struct weir_slice){*at, (size_t)(stop - *at)}, head);
	*at = stop + 2;
	return v;
}

/* Check a complete field line [p, stop). */
static enum guard_verdict field_line(const char *p, const char *stop, struct http_head *head)
{
	size_t name = guard_run(p, GUARD_TOKEN);
	struct weir_http_header *field;

	if (name == 0 || p[name] != ':')
		return guard_refuse(head, 400, "a header field is malformed");
	if (head->n_headers == WEIR_HTTP_HEADERS_MAX)
		return guard_refuse(head, 431, "too many header fields");
	field = &head->headers[head->n_headers++];
	field->name = (struct weir_slice){p, name};
	field->value = ows_trim(p + name + 1, stop);
	return guard_field(field, head);
}

/* Check the fields, up to and including the empty line. */
static enum guard_verdict fields(
    const char *start, const char **at, const char *end, struct http_head *head)
{
	for (;;) {
		const char *p = *at, *stop = p < end && *p == '\r' ? p : line_end(p, end);
		enum guard_verdict v;
		if ((size_t)(stop - start) + 2 > WEIR_HTTP_HEAD_MAX)
			return guard_refuse(head, 431, "the head is too long");
		v = judge_end(stop, end, head);
		if (v != GUARD_GOOD)
			return v;
		*at = stop + 2;
		if (stop == p)
			return GUARD_GOOD;
		v = field_line(p, stop, head);
		if (v != GUARD_GOOD)
			return v;
	}
}

enum guard_verdict guard_head(const char *p, size_t n, struct http_head *head)
{
	const char *at = p, *end = p + n;
	enum guard_verdict v;

	*head = (struct http_head){
	    .headers = head->headers, .secure = head->secure, .methods = head->methods};
	v = skip_empty_line(&at, end, head);
	if (v == GUARD_GOOD)
		v = first_line(&at, end, head);
	if (v == GUARD_GOOD)
		v = fields(p, &at, end, head);
	if (v == GUARD_GOOD)
		v = guard_whole(head);
	head->n = (size_t)(at - p);
	return v;
}

enum guard_verdict guard_answer(const char *p, size_t n, struct http_head *head)
{
	const char *at = p, *end = p + n;
	enum guard_verdict v;

	*head = (struct http_head){.headers = head->headers, .answer = true};
	v = answer_line(&at, end, head);
	if (v == GUARD_GOOD)
		v = fields(p, &at, end, head);
	if (v == GUARD_GOOD)
		v = guard_whole_answer(head);
	head->n = (size_t)(at - p);
	return v;
}

bool guard_news(const char *p, size_t seen, size_t n)
{
	size_t from = seen > 0 ? seen - 1 : 0; /* the last byte seen may be a CR */

	if (seen <= REQUEST_LINE_MAX + 2 && n > REQUEST_LINE_MAX)
		return true; /* + 2: an empty line may precede the request line */
	return n + 2 > WEIR_HTTP_HEAD_MAX || line_end(p + from, p + n) != p + n;
}

int weir_http_guard(const char *p, size_t n, size_t *head_len, int *status)
{
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_head head = {.headers = headers};
	enum guard_verdict v = guard_head(p, n, &head);

	if (v == GUARD_MORE)
		return 0;
	if (v == GUARD_REFUSED) {
		if (status)
			*status = head.status;
		return WEIR_EINVAL;
	}
	if (head_len)
		*head_len = head.n;
	return 1;
}
