/* SPDX-License-Identifier: MIT */
/* Escapes and collects text; see text.h. */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_range(unsigned char c, unsigned char from, unsigned char to)
{
	return c >= from && c <= to;
}

/* Accepts the well-formed byte sequences in table 3-7 of Unicode 15. */
size_t text_char(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	unsigned char from = 0x80, to = 0xbf;
	size_t n = in_range(p[0], 0xc2, 0xdf)   ? 2
		   : in_range(p[0], 0xe0, 0xef) ? 3
		   : in_range(p[0], 0xf0, 0xf4) ? 4
						: 0;

	if (p[0] < 0x80)
		return 1;
	if (n == 0)
		return 0;
	if (p[0] == 0xe0)
		from = 0xa0;
	else if (p[0] == 0xed)
		to = 0x9f;
	else if (p[0] == 0xf0)
		from = 0x90;
	else if (p[0] == 0xf4)
		to = 0x8f;
	if (!in_range(p[1], from, to))
		return 0;
	for (size_t i = 2; i < n; i++)
		if (!in_range(p[i], 0x80, 0xbf))
			return 0;
	return n;
}

bool text_is_control(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	return *p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && in_range(p[1], 0x80, 0x9f));
}

static const char *short_escape(unsigned char c)
{
	return c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : NULL;
}

/* Write the first character of `in` to `piece`, escaped if necessary. Returns its length in
 * `in`. */
static size_t escape_one(const unsigned char *in, const char *also, char piece[16])
{
	size_t n = text_char((const char *)in), escape = strchr(also, *in) != NULL;

	if (short_escape(*in)) {
		strcpy(piece, short_escape(*in));
		return 1;
	}
	if (n == 0 || text_is_control((const char *)in)) {
		int used = snprintf(piece, 16, "\\x%02x", in[0]);
		if (n == 2)
			snprintf(piece + used, 16 - (size_t)used, "\\x%02x", in[1]);
		return n == 2 ? 2 : 1;
	}
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

int64_t text_env_number(const char *name)
{
	const char *text = getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' ? value : -1;
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
