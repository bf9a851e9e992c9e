/* SPDX-License-Identifier: MIT */
/*
 * Axes: values to places and where their ticks are.
 *
 * A tail axis is linear and has values -log10(1 - q), as HdrHistogram plots percentiles: 90, 99, 99.9 % are equally far
 * apart. Plain data, pure functions.
 */
#ifndef WEIR_REPORT_SCALE_H
#define WEIR_REPORT_SCALE_H

#include <stdbool.h>

enum scale_kind { SCALE_LINEAR, SCALE_LOG };

struct scale {
	enum scale_kind kind;
	double low, high; /* low < high; of a log scale both above 0 */
	bool whole;       /* ticks at whole numbers only */
};

/** Most ticks that scale_ticks gives. */
#define SCALE_TICKS_MAX 24

/** 0 to at least `high`, ending at a round number. Not finite or not above 0: up to 1. */
struct scale scale_linear(double high);

/** 0 to exactly `high`. */
struct scale scale_exact(double high);

/** Around low..high in steps of 1, 2, 5 per decade, at least one decade and at most 12. Anything
 *  senseless: 1 ms to 1 s. */
struct scale scale_log(double low, double high);

/** Place of `value`, 0 at low and 1 at high; values outside are moved to the edge. */
double scale_at(const struct scale *s, double value);

/** Round numbers within the scale into tick[SCALE_TICKS_MAX], about `wanted`; returns how many. */
int scale_ticks(const struct scale *s, int wanted, double *tick);

#endif
