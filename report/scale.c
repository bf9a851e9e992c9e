/* SPDX-License-Identifier: MIT */
/* Chooses round numbers for axes: 1, 2 and 5 times a power of ten and, for the steps between ticks,
 * also 2.5 times; see scale.h. */
#include "report/scale.h"

#include <math.h>

/* Maximum number of decades of a log scale. A larger range is due to an outlier near 0, which is
 * cut off. */
#define SCALE_DECADES_MAX 12

/* Round `v` up to 1, 2 or 5 times a power of ten, with a small tolerance. */
static double round_up(double v)
{
	double power = pow(10, floor(log10(v)));
	double digit = v / power;

	return power * (digit <= 1.0000001      ? 1
			   : digit <= 2.0000001 ? 2
			   : digit <= 5.0000001 ? 5
						: 10);
}

/* Like round_up, but also to 2.5 times a power of ten, for ticks such as 25, 50, 75. */
static double step_up(double v)
{
	double up = round_up(v), quarter = up / 2;

	return fabs(log10(up) - log10(5) - floor(log10(up))) < 1e-6 && v <= quarter * 1.0000001
		   ? quarter
		   : up;
}

static double round_down(double v)
{
	double power = pow(10, floor(log10(v)));
	double digit = v / power;

	return power * (digit >= 4.9999999 ? 5 : digit >= 1.9999999 ? 2 : 1);
}

struct scale scale_exact(double high)
{
	return (struct scale){SCALE_LINEAR, 0, isfinite(high) && high > 0 ? high : 1, false};
}

struct scale scale_linear(double high)
{
	if (!isfinite(high) || high <= 0)
		return scale_exact(1);
	double step = step_up(high / 5);
	return scale_exact(ceil(high / step - 1e-9) * step);
}

struct scale scale_log(double low, double high)
{
	if (!(low > 0) || !isfinite(high) || high < low)
		return (struct scale){SCALE_LOG, 1e-3, 1, false};
	low = fmax(round_down(low), high * pow(10, -SCALE_DECADES_MAX));
	high = round_up(high);
	return (struct scale){SCALE_LOG, low, fmax(high, low * 10), false};
}

double scale_at(const struct scale *s, double value)
{
	double at = s->kind == SCALE_LOG ? log(fmax(value, s->low) / s->low) / log(s->high / s->low)
					 : (value - s->low) / (s->high - s->low);

	return fmin(fmax(at, 0), 1);
}

static int linear_ticks(const struct scale *s, int wanted, double *tick)
{
	double step = step_up((s->high - s->low) / wanted);
	int n = 0;

	if (s->whole)
		step = fmax(ceil(step), 1);
	for (double v = 0; v <= s->high * (1 + 1e-9) && n < SCALE_TICKS_MAX; v = step * n)
		tick[n++] = v;
	return n;
}

/* Store ticks at the powers of ten and, if there are few of them, at 2 and 5 times each. */
static int log_ticks(const struct scale *s, int wanted, double *tick)
{
	static const double digit[] = {1, 2, 5};
	int from = (int)floor(log10(s->low) + 1e-9), to = (int)ceil(log10(s->high) - 1e-9);
	int per = to - from <= wanted / 3 ? 3 : 1, n = 0;

	for (int e = from; e <= to; e++) {
		for (int d = 0; d < per && n < SCALE_TICKS_MAX; d++) {
			double v = digit[d] * pow(10, e);
			if (v >= s->low * 0.9999 && v <= s->high * 1.0001)
				tick[n++] = v;
		}
	}
	return n;
}

int scale_ticks(const struct scale *s, int wanted, double *tick)
{
	return s->kind == SCALE_LOG ? log_ticks(s, wanted, tick) : linear_ticks(s, wanted, tick);
}
