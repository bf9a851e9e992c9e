/* SPDX-License-Identifier: MIT */
/* Functions that append text to memory, which must be large enough. Each returns the position after
 * what it wrote. */
#ifndef WEIR_HTTP_PUT_H
#define WEIR_HTTP_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Maximum number of digits in a number. */
#define PUT_NUMBER_MAX 20

static inline char *put(char *at, const char *p, size_t n)
{
	memcpy(at, p, n);
	return at + n;
}

static inline char *put_number(char *at, uint64_t v)
{
	char digits[PUT_NUMBER_MAX];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	return put(at, digits + i, sizeof(digits) - i);
}

/** Append the string literal `text`. */
#define PUT(at, text) put(at, text, sizeof(text) - 1)

#endif
