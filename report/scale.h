/* SPDX-License-Identifier: MIT */
/*
 * Scales of axes: map values to positions, and choose ticks.
 *
 * The axis of a tail chart is linear in -log10(1 - q), as in the plots of HdrHistogram, so that 90,
 * 99 and 99.9 % are equally far apart. Plain data and pure functions.
 */
#ifndef WEIR_REPORT_SCALE_H
#define WEIR_REPORT_SCALE_H

#include <stdbool.h>

enum scale_kind { SCALE_LINEAR, SCALE_LOG };

struct scale {
	enum scale_kind kind;
	double low, high; /* low < high; on a log scale both above 0 */
	bool whole;       /* ticks at whole numbers only */
};

/** Maximum number of ticks that scale_ticks stores. */
#define SCALE_TICKS_MAX 24

/** Return a scale from 0 to a round number that is at least `high`, or to 1 if `high` is not finite
 * or not above 0. */
struct scale scale_linear(double high);

/** Return a scale from 0 to exactly `high`, or to 1 if `high` is not finite or not above 0. */
struct scale scale_exact(double high);

/** Return a log scale over low..high, rounded outwards to 1, 2 or 5 times a power of ten, with 1 to
 * 12 decades. If the values are invalid, it is 0.001 to 1. */
struct scale scale_log(double low, double high);

/** Return the position of `value`: 0 at `low`, 1 at `high`. Values outside the scale are
 * clamped. */
double scale_at(const struct scale *s, double value);

/** Store about `wanted` round numbers within the scale in tick[SCALE_TICKS_MAX]. Returns their
 * number. */
int scale_ticks(const struct scale *s, int wanted, double *tick);

#endif
