/* SPDX-License-Identifier: MIT */
/*
 * Escapes text from servers before it reaches the terminal; see plain.h.
 *
 * next_piece() splits a text into plain characters and escapes; all functions use it.
 * plain_vprint() parses formats itself, since fprintf does not know the width of an escaped text.
 * No state; any thread.
 */
#include "plain.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/** Size of a buffer for any escape: "\u202e" with its NUL is the longest. */
#define ESCAPE_MAX 8

/* ---- characters ---- */

/** Decode the character at the beginning of p[0..n) and store its code point in *c. Returns its
 *  length, or 0 if it is not valid UTF-8. */
static size_t decode(const char *p, size_t n, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char first = (unsigned char)*p;
	size_t len = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (len == 0 || len > n || first > 0xf4)
		return 0;
	*c = len == 1 ? first : first & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | ((unsigned char)p[i] & 0x3f);
	}
	bool surrogate = *c >= 0xd800 && *c <= 0xdfff;
	return *c < least[len] || *c > 0x10ffff || surrogate ? 0 : len;
}

static bool is_plain(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
		return false;
	return c != 0x61c && c != 0x200e && c != 0x200f && !(c >= 0x2028 && c <= 0x202e) &&
	       !(c >= 0x2066 && c <= 0x2069);
}

/** Return the text of the next piece of p[0..n), n > 0: a plain character, or its escape. Sets *len
 *  to the number of bytes of `p` that the piece replaces, and *put to the length of the text. */
static const char *next_piece(
    const char *p, size_t n, char escape[ESCAPE_MAX], size_t *len, size_t *put)
{
	static const char letters[] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r'};
	uint32_t c;

	*len = *put = decode(p, n, &c);
	if (*len > 0 && is_plain(c))
		return p;
	if (*len == 0) {
		*len = 1;
		c = (unsigned char)*p;
	}
	if (*len == 1 && c < sizeof(letters) && letters[c])
		*put = (size_t)snprintf(escape, ESCAPE_MAX, "\\%c", letters[c]);
	else
		*put = (size_t)snprintf(
		    escape, ESCAPE_MAX, *len == 1 ? "\\x%02x" : "\\u%04x", (unsigned)c & 0xffff);
	return escape;
}

char *plain_text(char *buf, size_t size, const char *text)
{
	char escape[ESCAPE_MAX];
	size_t n = strlen(text), at = 0, len, put;

	for (; n > 0; text += len, n -= len) {
		const char *piece = next_piece(text, n, escape, &len, &put);
		if (put >= size - at)
			break;
		memcpy(buf + at, piece, put);
		at += put;
	}
	buf[at] = '\0';
	return buf;
}

void plain_lines(FILE *out, const char *text)
{
	char escape[ESCAPE_MAX];
	size_t n = strlen(text), len, put;

	for (; n > 0; text += len, n -= len) {
		const char *piece = next_piece(text, n, escape, &len, &put);
		if (*text == '\n' || *text == '\t')
			fputc(*text, out);
		else
			fwrite(piece, 1, put, out);
	}
}

void plain_json(FILE *out, const char *text, size_t n)
{
	for (size_t len; n > 0; text += len, n -= len) {
		uint32_t c = 0xfffd;
		len = decode(text, n, &c);
		if (len == 1 && (c == '\n' || c == '\t' || c == '\r'))
			/* whitespace between JSON tokens is printed as it is, but '\r' as a
			 * space */
			fputc(c == '\r' ? ' ' : (int)c, out);
		else if (len > 0 && is_plain(c))
			fwrite(text, 1, len, out);
		else
			fprintf(out, "\\u%04x", len > 0 ? (unsigned)c : 0xfffd);
		len = len > 0 ? len : 1;
	}
}

/* ---- formats ---- */

/** A parsed conversion such as "%-16.40s". */
struct conversion {
	char text[48]; /* as passed to fprintf */
	bool left;
	int width, precision; /* precision is -1 if not given */
	int longs;            /* 1 for l, 2 for ll, 3 for z */
	char letter;
};

/* Read a width or precision: digits, or '*' for an argument. */
static const char *take_number(const char *p, int *n, va_list *args)
{
	if (*p == '*') {
		*n = va_arg(*args, int);
		return p + 1;
	}
	char *end;
	*n = (int)strtol(p, &end, 10);
	return end;
}

/* Parse a conversion; `p` points after its '%'. Returns the end of the conversion. */
static const char *take_conversion(const char *p, struct conversion *c, va_list *args)
{
	char flags[8] = "", width[16] = "", precision[16] = "";
	const char *begin = p;

	*c = (struct conversion){.precision = -1};
	for (; *p && strchr("-+ #0", *p); p++)
		c->left |= *p == '-';
	snprintf(flags, sizeof(flags), "%.*s", (int)(p - begin), begin);
	if (*p == '*' || (*p >= '1' && *p <= '9')) {
		p = take_number(p, &c->width, args);
		snprintf(width, sizeof(width), "%d", c->width);
	}
	if (*p == '.') {
		p = take_number(p + 1, &c->precision, args);
		snprintf(precision, sizeof(precision), ".%d", c->precision);
	}
	for (; *p == 'l' || *p == 'z'; p++)
		c->longs += *p == 'z' ? 3 : 1;
	c->letter = *p;
	snprintf(c->text, sizeof(c->text), "%%%s%s%s%s%c", flags, width, precision,
	    c->longs == 3   ? "z"
	    : c->longs == 2 ? "ll"
	    : c->longs == 1 ? "l"
			    : "",
	    c->letter);
	return *p ? p + 1 : p;
}

/* The formats used below are assembled from formats that the compiler has already checked. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void print_number(FILE *out, const struct conversion *c, va_list *args)
{
	if (strchr("efg", c->letter))
		fprintf(out, c->text, va_arg(*args, double));
	else if (c->longs == 3)
		fprintf(out, c->text, va_arg(*args, size_t));
	else if (c->longs == 2)
		fprintf(out, c->text, va_arg(*args, long long));
	else if (c->longs == 1)
		fprintf(out, c->text, va_arg(*args, long));
	else
		fprintf(out, c->text, va_arg(*args, int));
}

#pragma GCC diagnostic pop

/* Return the length of text[0..n) without an incomplete character at its end. */
static size_t whole_characters(const char *text, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		const unsigned char c = (unsigned char)text[n - back];
		size_t len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		if ((c & 0xc0) != 0x80)
			return c >= 0xc2 && c <= 0xf4 && len > back ? n - back : n;
	}
	return n;
}

static void pad(FILE *out, int n)
{
	while (n-- > 0)
		fputc(' ', out);
}

/* Print text[0..n), or only count its characters if `out` is NULL. */
static int put_text(FILE *out, const char *text, size_t n)
{
	char escape[ESCAPE_MAX];
	size_t len, put;
	int columns = 0;

	for (; n > 0; text += len, n -= len) {
		const char *piece = next_piece(text, n, escape, &len, &put);
		columns += piece == escape ? (int)put : 1;
		if (out)
			fwrite(piece, 1, put, out);
	}
	return columns;
}

static void print_text(FILE *out, const struct conversion *c, const char *text)
{
	size_t n = c->precision >= 0 ? strnlen(text, (size_t)c->precision) : strlen(text);

	if (c->precision >= 0 && n == (size_t)c->precision)
		n = whole_characters(text, n);
	int missing = c->width - put_text(NULL, text, n);
	pad(out, c->left ? 0 : missing);
	put_text(out, text, n);
	pad(out, c->left ? missing : 0);
}

static void print_char(FILE *out, char c)
{
	put_text(out, &c, 1);
}

void plain_vprint(FILE *out, const char *fmt, va_list list)
{
	struct conversion c;
	va_list args;

	va_copy(args, list);
	while (*fmt) {
		size_t n = strcspn(fmt, "%");
		fwrite(fmt, 1, n, out);
		fmt += n;
		if (!*fmt)
			break;
		fmt = take_conversion(fmt + 1, &c, &args);
		if (c.letter == '%')
			fputc('%', out);
		else if (c.letter == 's')
			print_text(out, &c, va_arg(args, const char *));
		else if (c.letter == 'c')
			print_char(out, (char)va_arg(args, int));
		else
			print_number(out, &c, &args);
	}
	va_end(args);
}

void plain_print(FILE *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	plain_vprint(out, fmt, args);
	va_end(args);
}
