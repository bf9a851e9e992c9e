/* SPDX-License-Identifier: MIT */
/*
 * Prepares text for display: escapes it, and collects it in buffers as snprintf does.
 *
 * Untrusted text is made safe for a line of output: control bytes (which could move a terminal's
 * cursor or forge a log line) become escapes. UTF-8 passes, except its C1 controls.
 */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Return the length of the UTF-8 character at `s`, or 0 if there is no valid one (a continuation
 *  byte, an overlong form, a surrogate, above U+10FFFF). */
size_t text_char(const char *s);

/** Whether `s` begins with a control character. These include U+0080..U+009F, which some terminals
 *  interpret. */
bool text_is_control(const char *s);

/**
 * Copy `in` to `out[size]`; size must be at least 1. Escapes control bytes (\n, \t, \r, \xNN) and
 * bytes that are not UTF-8, and puts a backslash before each byte of `also`. Truncates, between
 * escapes and characters, if the result does not fit; always terminates. Returns the length
 * written.
 */
size_t text_escape(char *out, size_t size, const char *in, const char *also);

/** Return the value of an environment variable if it is a whole number without a sign, otherwise
 *  -1. */
int64_t text_env_number(const char *name);

/** A buffer that collects text in `buf[size]`; `len` also counts text that did not fit. The caller
 *  sets `buf` and `size`, and sets `len` to 0. */
struct text_out {
	char *buf;
	size_t size, len;
};

void text_put(struct text_out *out, const char *s);
void text_put_bytes(struct text_out *out, const char *s, size_t n);

/** Terminate the collected text. Returns the length of the whole text, including what did not
 *  fit. */
size_t text_end(struct text_out *out);

#endif
