/* SPDX-License-Identifier: MIT */
/*
 * Decides whether series B is better than series A, from their ratio and its bootstrap interval
 * (Efron 1979, percentile method).
 *
 * Pure functions; the random numbers are derived from `seed`, so reports are reproducible. With few
 * values, the coverage of the percentile method is slightly below its nominal 95 %: 92 to 94 % with
 * 5 to 16 pairs, 95 % with 40 (tests/unit/load/test_stats.c). The comparisons use about 0.2 MB of
 * stack.
 */
#ifndef WEIR_LOAD_STATS_H
#define WEIR_LOAD_STATS_H

#include <stdint.h>

enum stats_verdict { STATS_BETTER, STATS_WORSE, STATS_NOISE, STATS_TOO_FEW };

struct stats_ratio {
	double ratio;     /* ratio of the medians, b over a; if paired, the median of b[i] / a[i] */
	double low, high; /* 95 % interval */
	int n;            /* number of pairs; if unpaired, the length of the shorter series */
	enum stats_verdict verdict;
};

/** Return the median of v[0..n), n >= 1; v is not changed. The call costs about 64 ns per value. */
double stats_median(const double *v, int n);

/**
 * Compare b[0..n) with a[0..n), where a[i] and b[i] were measured directly after each other
 * (interleaved rounds). Only the first 4096 pairs are used. `more_is_better` determines whether a
 * ratio above 1 is an improvement. A verdict requires an interval that excludes 1 and a ratio that
 * differs from 1 by `least` or more (0.02 ignores differences below 2 %).
 *
 * With fewer than 5 pairs, the verdict is TOO_FEW and the interval is the range min..max. The range
 * of so few values does not bound the median with sufficient confidence: the range of 5 values
 * contains the median with a probability of 94 %, that of 3 values with 75 %. If a value is not
 * above 0, the verdict is TOO_FEW, and ratio and interval are 0.
 */
struct stats_ratio stats_compare_paired(
    const double *a, const double *b, int n, int more_is_better, double least, uint64_t seed);

/**
 * Like stats_compare_paired, but for unpaired values a[0..n_a) and b[0..n_b), such as the seconds
 * of two runs. Blocks of `block` consecutive values are resampled, since neighbouring seconds are
 * not independent (moving-block bootstrap, Kuensch 1989). A series of more than 4096 values is
 * shortened by averaging neighbours. If either series has fewer than 5 blocks, the verdict is
 * TOO_FEW. The call takes up to 0.2 s for two series of an hour.
 */
struct stats_ratio stats_compare_unpaired(const double *a, int n_a, const double *b, int n_b,
    int block, int more_is_better, double least, uint64_t seed);

#endif
