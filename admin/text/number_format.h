/* SPDX-License-Identifier: MIT */
/*
 * Formats measured numbers with five significant digits, the precision of a chart, in as few bytes
 * as possible. number_print takes about 20 ns. printf would take ten times as long, and a history
 * has half a million numbers. Pure functions. Text for people is in number_text.h.
 */
#ifndef WEIR_ADMIN_NUMBER_FORMAT_H
#define WEIR_ADMIN_NUMBER_FORMAT_H

#include <stddef.h>

#include "framework/base/number_text.h"

/** Write `v` into `out[NUMBER_MAX]` as a JSON number, without exponent and trailing zeros, or
 *  "null" for NaN. Negative values are written as 0, values above 9.9e14 as 9.9e14. Returns the
 *  length; no NUL is appended. */
size_t number_print(char *out, double v);

/** Write a duration of `s` seconds into `out` for display: "6.2 s", or "8 ms" below one second. Returns
 *  `out`. */
const char *seconds_text(char out[NUMBER_MAX], double s);

/** Return `v` rounded to five digits, or 0 if it is negative. */
double number_round(double v);

#endif
