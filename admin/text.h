/* SPDX-License-Identifier: MIT */
/*
 * A growing text. Once memory runs out the text is empty and stays so: write on, ask once at the
 * end. One thread.
 */
#ifndef WEIR_ADMIN_TEXT_H
#define WEIR_ADMIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/annotate.h>

struct text {
	char *p; /* NULL while empty; always ends in NUL otherwise */
	size_t n, size;
	bool failed;
};

/** Append as printf does. */
void text_printf(struct text *t, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Append `n` bytes. */
void text_append(struct text *t, const char *p, size_t n);

/** Give the bytes to the caller (free()) and leave `t` empty. NULL when memory ran out. */
char *text_take(struct text *t, size_t *n);

void text_fini(struct text *t);

#endif
