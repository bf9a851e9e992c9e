/* SPDX-License-Identifier: MIT */
/* Formats numbers for people; see number_text.h. */
#include "base/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers with fewer digits before the point are easy to read without separators. */
#define NUMBER_GROUPED 5

/* Insert a comma before each three digits of the whole part of the number in `out[NUMBER_MAX]`, if
 *  it has at least NUMBER_GROUPED digits. */
static void number_group(char out[NUMBER_MAX])
{
	size_t sign = out[0] == '-', digits = strspn(out + sign, "0123456789");

	if (digits < NUMBER_GROUPED)
		return;
	for (size_t left = digits; left > 3 && strlen(out) + 1 < NUMBER_MAX;) {
		left -= 3;
		char *at = out + sign + left;
		memmove(at + 1, at, strlen(at) + 1);
		*at = ',';
	}
}

const char *number_text(char out[NUMBER_MAX], double v, int digits)
{
	static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
	const double size = fmin(fabs(v), NUMBER_LARGEST);

	if (size >= power[digits] - 0.5)
		snprintf(out, NUMBER_MAX, "%.0f", copysign(size, v));
	else if (size > 0 && size < 1e-4)
		snprintf(out, NUMBER_MAX, "%.*f", digits + 4, v);
	else
		snprintf(out, NUMBER_MAX, "%.*g", digits, v);
	number_group(out);
	return out;
}
