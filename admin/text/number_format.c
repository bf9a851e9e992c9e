/* SPDX-License-Identifier: MIT */
/* Formats numbers; see number_format.h. A value is split into n * 10^exponent, where n has five
 * digits. The digits of n are then printed with a decimal point. */
#include "number_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGEST  NUMBER_LARGEST
#define SMALLEST 1e-12 /* smaller measured values are printed as 0 */

static const double power[] = {1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2,
    1e-1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};
#define POWER(e) power[(e) + 12]

/* Store the five digits of `v` > 0 in *n, 10000 to 99999, and return the exponent of the last
 * one. */
static int split(double v, long *n)
{
	int e = -12;

	while (v >= POWER(e + 1))
		e++;
	/* n = v * 10^(4 - e), as a division for e >= 4 and as two multiplications otherwise */
	*n = e >= 4 ? lrint(v / POWER(e - 4)) : lrint(v * POWER(4) * POWER(-e));
	if (*n < 100000)
		return e - 4;
	*n = 10000;
	return e - 3;
}

const char *seconds_text(char out[NUMBER_MAX], double s)
{
	char number[NUMBER_MAX];

	if (s < 1)
		snprintf(out, NUMBER_MAX, "%.0f ms", s * 1e3);
	else
		snprintf(out, NUMBER_MAX, "%.20s s", number_text(number, s, s < 100 ? 2 : 3));
	return out;
}

double number_round(double v)
{
	long n;

	if (!(v >= SMALLEST))
		return isnan(v) ? v : 0;
	if (v > LARGEST)
		return LARGEST;
	int e = split(v, &n);
	return e >= 0 ? (double)n * POWER(e) : (double)n / POWER(-e);
}

static char *put_zeros(char *p, int n)
{
	memset(p, '0', (size_t)n);
	return p + n;
}

size_t number_print(char *out, double v)
{
	char digit[5], *p = out;
	long n;
	int count = 5;

	if (isnan(v)) {
		memcpy(out, "null", 4);
		return 4;
	}
	if (v < SMALLEST) {
		*out = '0';
		return 1;
	}
	int e = split(v > LARGEST ? LARGEST : v, &n);
	for (int i = 4; i >= 0; i--, n /= 10)
		digit[i] = (char)('0' + n % 10);
	for (; count > 1 && digit[count - 1] == '0'; e++)
		count--;
	int whole = count + e; /* digits before the point */
	if (whole <= 0) {
		*p++ = '0';
		*p++ = '.';
		p = put_zeros(p, -whole);
		whole = 0;
	}
	for (int i = 0; i < count; i++) {
		if (i == whole && i > 0)
			*p++ = '.';
		*p++ = digit[i];
	}
	return (size_t)((e > 0 ? put_zeros(p, e) : p) - out);
}
