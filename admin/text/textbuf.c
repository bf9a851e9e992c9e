/* SPDX-License-Identifier: MIT */
/* Implements a growing text; see textbuf.h. The size of the buffer doubles as needed. After a
 * failed allocation, all further calls do nothing. */
#include "textbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* Initial size of the buffer, a guess. It doubles four times for a scrape of ten stages, which is
 * about 60 KB. */
#define TEXTBUF_FIRST_BYTES 4096

/* Ensure space for `more` bytes and a NUL. */
static bool textbuf_reserve(struct textbuf *t, size_t more)
{
	if (t->failed)
		return false;
	if (t->size - t->n > more)
		return true;
	size_t size = t->size ? t->size : TEXTBUF_FIRST_BYTES;
	while (size - t->n <= more)
		size *= 2;
	char *p = realloc(t->p, size);
	if (!p) {
		textbuf_fini(t);
		t->failed = true;
		return false;
	}
	t->p = p;
	t->size = size;
	return true;
}

void textbuf_append(struct textbuf *t, const char *p, size_t n)
{
	if (!textbuf_reserve(t, n))
		return;
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = '\0';
}

void textbuf_printf(struct textbuf *t, const char *fmt, ...)
{
	char line[512]; /* a longer text is formatted a second time, into the buffer itself */
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (n < (int)sizeof(line)) {
		textbuf_append(t, line, n > 0 ? (size_t)n : 0);
		return;
	}
	if (!textbuf_reserve(t, (size_t)n))
		return;
	va_start(args, fmt);
	vsnprintf(t->p + t->n, t->size - t->n, fmt, args);
	va_end(args);
	t->n += (size_t)n;
}

void textbuf_json_string(struct textbuf *t, const char *text)
{
	textbuf_append(t, "\"", 1);
	while (*text) {
		size_t plain = 0, n;
		while ((n = utf8_bytes(text + plain)) > 0 && (unsigned char)text[plain] >= ' ' &&
		       text[plain] != '"' && text[plain] != '\\')
			plain += n;
		textbuf_append(t, text, plain);
		text += plain;
		if (!*text)
			break;
		if (utf8_bytes(text) == 0)
			textbuf_append(t, "?", 1);
		else
			textbuf_printf(
			    t, *text == '"' || *text == '\\' ? "\\%c" : "\\u%04x", *text);
		text++;
	}
	textbuf_append(t, "\"", 1);
}

char *textbuf_take(struct textbuf *t, size_t *n)
{
	textbuf_append(t, "", 0); /* so that even an empty text is a string */
	char *p = t->p;

	*n = t->n;
	*t = (struct textbuf){.failed = t->failed};
	return p;
}

void textbuf_fini(struct textbuf *t)
{
	free(t->p);
	*t = (struct textbuf){0};
}
