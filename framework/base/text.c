/* SPDX-License-Identifier: MIT */
/* Escaping and collecting; see text.h. */
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The UTF-8 forms of U+0080..U+009F begin with this byte; some terminals obey them. */
#define C1_LEAD 0xc2

static bool is_c1(const unsigned char *p)
{
	return p[0] == C1_LEAD && p[1] >= 0x80 && p[1] < 0xa0;
}

/* Bytes of the character at `p`: what must not be torn apart by a cut. */
static size_t char_bytes(const unsigned char *p)
{
	size_t n = 1;

	while (p[0] >= 0xc0 && n < 4 && (p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static const char *short_escape(unsigned char c)
{
	return c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : NULL;
}

/* One character of `in` as output in `piece`; returns how many bytes of `in` it was. */
static size_t escape_one(const unsigned char *in, const char *also, char piece[16])
{
	if (short_escape(*in)) {
		strcpy(piece, short_escape(*in));
		return 1;
	}
	if (is_c1(in)) {
		snprintf(piece, 16, "\\x%02x\\x%02x", in[0], in[1]);
		return 2;
	}
	if (*in < 0x20 || *in == 0x7f) {
		snprintf(piece, 16, "\\x%02x", *in);
		return 1;
	}
	size_t n = char_bytes(in), escape = strchr(also, *in) != NULL;
	piece[0] = '\\';
	memcpy(piece + escape, in, n);
	piece[escape + n] = '\0';
	return n;
}

size_t text_escape(char *out, size_t size, const char *in, const char *also)
{
	const unsigned char *p = (const unsigned char *)in;
	size_t used = 0;
	char piece[16];

	while (*p) {
		p += escape_one(p, also, piece);
		size_t n = strlen(piece);
		if (used + n >= size)
			break;
		memcpy(out + used, piece, n);
		used += n;
	}
	out[used] = '\0';
	return used;
}

void text_put_bytes(struct text_out *out, const char *s, size_t n)
{
	if (out->len + 1 < out->size) {
		size_t room = out->size - 1 - out->len;
		memcpy(out->buf + out->len, s, n < room ? n : room);
	}
	out->len += n;
}

void text_put(struct text_out *out, const char *s)
{
	text_put_bytes(out, s, strlen(s));
}

size_t text_end(struct text_out *out)
{
	if (out->size > 0)
		out->buf[out->len < out->size ? out->len : out->size - 1] = '\0';
	return out->len;
}
