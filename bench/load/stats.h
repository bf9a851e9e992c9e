/* SPDX-License-Identifier: MIT */
/*
 * Is B better than A? Ratios with bootstrap intervals (Efron 1979, percentile method).
 *
 * Pure functions; the random numbers come from `seed`, so a report says the same twice. The
 * percentile method covers a little less than it says while there are few values: with 5 to 16
 * pairs 92 to 94 %, with 40 95 % (tests/unit/load/test_stats.c). About 0.2 MB of stack.
 */
#ifndef WEIR_LOAD_STATS_H
#define WEIR_LOAD_STATS_H

#include <stdint.h>

enum stats_verdict { STATS_BETTER, STATS_WORSE, STATS_NOISE, STATS_TOO_FEW };

struct stats_ratio {
	double ratio;     /* median of b over median of a; paired: median of b[i]/a[i] */
	double low, high; /* 95 % interval */
	int n;            /* pairs; unpaired: values of the shorter series */
	enum stats_verdict verdict;
};

/** Median of v[0..n), n >= 1; v is not changed. About 64 n ns. */
double stats_median(const double *v, int n);

/**
 * Compare b[0..n) to a[0..n), pairs measured one after the other (interleaved rounds), of which at
 * most 4096 count. `more_is_better` decides what a ratio over 1 means. A verdict needs an interval
 * that excludes 1 and a ratio at least `least` off 1 (0.02: less interests nobody).
 *
 * TOO_FEW with the range min..max as interval: fewer than 5 pairs, of whose median nobody can tell
 * with 95 % (the range of 5 covers it with 94 %, that of 3 with 75 %). TOO_FEW with all zero: a
 * value is not above 0.
 */
struct stats_ratio stats_compare_paired(
    const double *a, const double *b, int n, int more_is_better, double least, uint64_t seed);

/**
 * The same for unpaired values a[0..n_a), b[0..n_b) (seconds of two runs): resamples blocks of
 * `block` neighbours, since neighbouring seconds are not independent (moving-block bootstrap,
 * Kuensch 1989). Series over 4096 values are folded into means of neighbours. TOO_FEW: fewer than 5
 * blocks in either. Up to 0.2 s for two series of an hour.
 */
struct stats_ratio stats_compare_unpaired(const double *a, int n_a, const double *b, int n_b,
    int block, int more_is_better, double least, uint64_t seed);

#endif
