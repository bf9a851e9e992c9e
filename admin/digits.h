/* SPDX-License-Identifier: MIT */
/*
 * Measured numbers with five significant digits: what a chart can show, in as few bytes as that
 * takes. Pure functions, about 20 ns a number (printf takes ten times as long, and a history has
 * half a million).
 */
#ifndef WEIR_ADMIN_DIGITS_H
#define WEIR_ADMIN_DIGITS_H

#include <stddef.h>

/** Room for any text of digits_print. */
#define DIGITS_MAX 32

/** Write `v` into `out[DIGITS_MAX]` as a JSON number, without exponent and without zeros at the
 *  end, or "null" for NaN; below 0 is written as 0, above 9.9e14 as that. Returns the length; no
 *  NUL. */
size_t digits_print(char *out, double v);

/** `v` rounded to five digits; 0 for what is below 0. */
double digits_round(double v);

#endif
