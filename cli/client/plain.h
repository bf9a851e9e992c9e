/* SPDX-License-Identifier: MIT */
/*
 * Prints untrusted text. The response of a server may contain bytes that move the cursor, rename
 * the window, or hide or forge a line. Verbs must use these functions for everything from a
 * response.
 *
 * The functions escape C0 (including newline and tab), DEL, C1, the characters that change the
 * writing direction or end a line (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069), and
 * bytes that are not UTF-8. The escapes look like "\n", "\x1b", "\u202e", "\xff". A backslash is
 * not escaped, so text can look like an escape, which is harmless. Any thread.
 */
#ifndef WEIR_CLI_PLAIN_H
#define WEIR_CLI_PLAIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <weir/annotate.h>

/**
 * Like fprintf, but the text of every %s and %c is escaped. `fmt` itself is not escaped, so it may
 * contain newlines and styles. Widths are in characters. A precision is in bytes of the text before
 * escaping, and is rounded down to whole characters. Supported conversions: d i u x s e f g, with
 * l, ll and z, c without a width, and %%.
 */
void plain_print(FILE *out, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Like plain_print, with a va_list. */
void plain_vprint(FILE *out, const char *fmt, va_list args) WEIR_PRINTF(2, 0);

/** Escape `text` into buf[size]. Text that does not fit is truncated between two characters.
 *  Returns `buf`. */
char *plain_text(char *buf, size_t size, const char *text);

/** Print a text of several lines. Newlines and tabs are printed unchanged, and everything else is
 *  escaped. */
void plain_lines(FILE *out, const char *text);

/** Print the JSON in text[0..n). Characters that would be escaped in a text are written as JSON
 *  escapes such as "\u009b", so that the JSON keeps its meaning; bytes that are not UTF-8 become
 *  "\ufffd". */
void plain_json(FILE *out, const char *text, size_t n);

#endif
