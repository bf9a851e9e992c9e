/* SPDX-License-Identifier: MIT */
/* Checks whether a text is valid UTF-8. JSON allows nothing else, but texts from outside and
 * truncated texts may contain other bytes. */
#ifndef WEIR_ADMIN_UTF8_H
#define WEIR_ADMIN_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/** Return the length of the character at `p` in a NUL-terminated text, or 0 if it is not valid.
 *  (Overlong forms of three or four bytes, and surrogates, pass: the JSON encoder refuses them.) */
static inline size_t utf8_bytes(const char *p)
{
	unsigned char c = (unsigned char)*p;
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	for (size_t k = 1; k < n; k++)
		if (((unsigned char)p[k] & 0xc0) != 0x80)
			return 0;
	return n;
}

static inline bool utf8_whole(const char *text)
{
	for (size_t n; *text; text += n)
		if ((n = utf8_bytes(text)) == 0)
			return false;
	return true;
}

#endif
