/* SPDX-License-Identifier: MIT */
/*
 * Compares two series of measurements; see stats.h.
 *
 * The bootstrap draws ranks of the sorted values. A resample is stored as the number of times that
 * each rank was drawn, and its median is found by scanning these counts, so resamples need not be
 * sorted. Paired comparisons resample the ratios, in blocks of one.
 *
 * All data is on the stack, and the time is bounded. A series longer than SERIES_MAX is folded
 * first: groups of neighbours are averaged (for example, pairs of seconds), and the block size is
 * reduced accordingly.
 */
#include "load/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "load/rng.h"

/* Number of resamples. Efron and Tibshirani (1993, 13.3) recommend 1000 or more for the bounds of
 * an interval. */
#define RESAMPLES 2000

/* Maximum length of a series: more than an hour at one value per second. */
#define SERIES_MAX 4096

/* Minimum number of pairs or blocks for a verdict. The widest possible interval for the median of n
 * independent values is their range, whose coverage is 1 - 2^(1-n): 75 % for three values, 88 % for
 * four, 94 % for five. */
#define LEAST_N 5

#define TAIL 0.025 /* probability outside the 95 % interval on each side */

struct series {
	int n, block;
	uint16_t rank[SERIES_MAX]; /* rank of the i-th value among the sorted values */
	double sorted[SERIES_MAX];
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- medians ---- */

/* Map doubles, including negative ones, to integers in the same order. */
static uint64_t order_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static double value_of(uint64_t order)
{
	uint64_t bits = order >> 63 ? order & ~(1ULL << 63) : ~order;
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* Return the k-th smallest value, counting from 0, without copying or sorting the array. The bits
 * of the result are determined one by one from the highest. To determine a bit, set it and count
 * the values below the number so far. If at most k values are below it, the bit stays set. */
static double smallest(const double *v, int n, int k)
{
	uint64_t at = 0;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t above = at | 1ULL << bit;
		int below = 0;
		for (int i = 0; i < n; i++)
			below += order_of(v[i]) < above;
		if (below <= k)
			at = above;
	}
	return value_of(at);
}

double stats_median(const double *v, int n)
{
	double upper = smallest(v, n, n / 2);

	return n % 2 ? upper : (smallest(v, n, n / 2 - 1) + upper) / 2;
}

/* ---- series ---- */

static void set_ranks(struct series *s, const double *v)
{
	memcpy(s->sorted, v, (size_t)s->n * sizeof(*v));
	qsort(s->sorted, (size_t)s->n, sizeof(*s->sorted), by_value);
	for (int i = 0; i < s->n; i++) {
		int low = 0, high = s->n - 1;
		/* a binary search; of several equal values it finds the first */
		while (low < high) {
			int middle = (low + high) / 2;
			if (s->sorted[middle] < v[i])
				low = middle + 1;
			else
				high = middle;
		}
		s->rank[i] = (uint16_t)low;
	}
}

/* Build a series, and fold it if it is too long. Values at the end that do not fill a group are
 * dropped. */
static void make_series(struct series *s, const double *v, int n, int block)
{
	double folded[SERIES_MAX] = {0};
	int fold = (n - 1) / SERIES_MAX + 1;

	s->n = n / fold;
	s->block = (block + fold - 1) / fold;
	for (int i = 0; i < s->n; i++) {
		double sum = 0;
		for (int j = 0; j < fold; j++)
			sum += v[i * fold + j];
		folded[i] = sum / fold;
	}
	set_ranks(s, folded);
}

/* Draw one resample in blocks and return its median. *k counts the random numbers used. */
static double resample(const struct series *s, uint64_t key, uint64_t *k)
{
	uint16_t times[SERIES_MAX];
	int below = (s->n - 1) / 2, above = s->n / 2, seen = 0, i = 0;

	memset(times, 0, (size_t)s->n * sizeof(times[0]));
	for (int drawn = 0; drawn < s->n;) {
		int from = (int)rng_below(
		    weir_random_at(key, (*k)++), (uint64_t)s->n - (uint64_t)s->block + 1);
		for (int j = 0; j < s->block && drawn < s->n; j++, drawn++)
			times[s->rank[from + j]]++;
	}
	while (seen + times[i] <= below)
		seen += times[i++];
	double lower = s->sorted[i];
	while (seen + times[i] <= above)
		seen += times[i++];
	return (lower + s->sorted[i]) / 2;
}

/* ---- verdicts ---- */

static enum stats_verdict judge(const struct stats_ratio *r, int more_is_better, double least)
{
	bool more = r->low > 1 && r->ratio - 1 >= least;
	bool less = r->high < 1 && 1 - r->ratio >= least;

	if (!more && !less)
		return STATS_NOISE;
	return more == (more_is_better != 0) ? STATS_BETTER : STATS_WORSE;
}

/* Compute the interval of median(b) / median(a), or of median(b) if a is NULL. */
static void set_interval(
    struct stats_ratio *r, const struct series *a, const struct series *b, uint64_t seed)
{
	double drawn[RESAMPLES];
	uint64_t key = rng_key(seed, 0), k = 0;

	for (int i = 0; i < RESAMPLES; i++) {
		drawn[i] = resample(b, key, &k);
		if (a)
			drawn[i] /= resample(a, key, &k);
	}
	qsort(drawn, RESAMPLES, sizeof(drawn[0]), by_value);
	r->low = drawn[(int)(TAIL * RESAMPLES)];
	r->high = drawn[RESAMPLES - 1 - (int)(TAIL * RESAMPLES)];
}

static bool all_positive(const double *v, int n)
{
	for (int i = 0; i < n; i++)
		if (!(v[i] > 0) || isinf(v[i]))
			return false;
	return n > 0;
}

static void extremes(const double *v, int n, double *min, double *max)
{
	*min = *max = v[0];
	for (int i = 1; i < n; i++) {
		*min = v[i] < *min ? v[i] : *min;
		*max = v[i] > *max ? v[i] : *max;
	}
}

struct stats_ratio stats_compare_paired(
    const double *a, const double *b, int n, int more_is_better, double least, uint64_t seed)
{
	struct stats_ratio r = {.n = n, .verdict = STATS_TOO_FEW};
	double ratio[SERIES_MAX];
	struct series s;

	if (n > SERIES_MAX)
		r.n = n = SERIES_MAX;
	if (!all_positive(a, n) || !all_positive(b, n))
		return r;
	for (int i = 0; i < n; i++)
		ratio[i] = b[i] / a[i];
	r.ratio = stats_median(ratio, n);
	extremes(ratio, n, &r.low, &r.high);
	if (n < LEAST_N)
		return r;
	make_series(&s, ratio, n, 1);
	set_interval(&r, NULL, &s, seed);
	r.verdict = judge(&r, more_is_better, least);
	return r;
}

struct stats_ratio stats_compare_unpaired(const double *a, int n_a, const double *b, int n_b,
    int block, int more_is_better, double least, uint64_t seed)
{
	struct stats_ratio r = {.n = n_a < n_b ? n_a : n_b, .verdict = STATS_TOO_FEW};
	double min_a, max_a, min_b, max_b;
	struct series sa, sb;

	if (!all_positive(a, n_a) || !all_positive(b, n_b))
		return r;
	extremes(a, n_a, &min_a, &max_a);
	extremes(b, n_b, &min_b, &max_b);
	r.ratio = stats_median(b, n_b) / stats_median(a, n_a);
	r.low = min_b / max_a;
	r.high = max_b / min_a;
	if (block < 1)
		block = 1;
	if (r.n / block < LEAST_N)
		return r;
	make_series(&sa, a, n_a, block);
	make_series(&sb, b, n_b, block);
	set_interval(&r, &sa, &sb, seed);
	r.verdict = judge(&r, more_is_better, least);
	return r;
}
