/* SPDX-License-Identifier: MIT */
/*
 * A growing text. Once memory runs out, it becomes empty and stays empty, so callers can append
 * without checks and check once at the end. Used by one thread.
 */
#ifndef WEIR_ADMIN_TEXTBUF_H
#define WEIR_ADMIN_TEXTBUF_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/annotate.h>

struct textbuf {
	char *p; /* NULL while empty; always ends in NUL otherwise */
	size_t n, size;
	bool failed;
};

/** Append formatted text, like printf. */
void textbuf_printf(struct textbuf *t, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Append `n` bytes. */
void textbuf_append(struct textbuf *t, const char *p, size_t n);

/** Append `text` as a JSON string, quotes included; bytes that are not UTF-8 become '?'. */
void textbuf_json_string(struct textbuf *t, const char *text);

/** Return the bytes, which the caller frees with free(), and leave `t` empty. Returns NULL if out
 *  of memory. */
char *textbuf_take(struct textbuf *t, size_t *n);

void textbuf_fini(struct textbuf *t);

#endif
