/* SPDX-License-Identifier: MIT */
/*
 * Text for people: escaped, and collected as snprintf does.
 *
 * Text that came from outside, made fit for a line of output: control bytes (which could move a
 * terminal's cursor or forge a log line) become escapes. UTF-8 passes, but for its C1 controls.
 */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/** Bytes of the UTF-8 character that `s` begins with; 0 when it is none (rest of another character,
 *  overlong, a surrogate, past U+10FFFF). */
size_t text_char(const char *s);

/** Does `s` begin with a control character? U+0080..U+009F are some, and some terminals obey them.
 */
bool text_is_control(const char *s);

/**
 * Copy `in` to `out[size]` (size at least 1), escaping control bytes (\n, \t, \r, \xNN), what is no
 * UTF-8, and putting a backslash before each byte of `also`. Cut between escapes and between
 * characters when it does not fit; always terminated. Returns the length written.
 */
size_t text_escape(char *out, size_t size, const char *in, const char *also);

/** Collects text in `buf[size]`; `len` counts what did not fit, too. Fill in buf and size. */
struct text_out {
	char *buf;
	size_t size, len;
};

void text_put(struct text_out *out, const char *s);
void text_put_bytes(struct text_out *out, const char *s, size_t n);

/** Terminate what was collected; returns the length the whole text has. */
size_t text_end(struct text_out *out);

#endif
