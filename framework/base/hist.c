/* SPDX-License-Identifier: MIT */
/*
 * Histograms of durations. The bucket bounds are the Renard series R20 (ISO 3), twenty per decade.
 *
 *   bucket 0          at most 1 us
 *   bucket 1..160     eight decades, 1 us to 100 s; bucket b holds (upper(b - 1), upper(b)]
 *   bucket 161        more than 100 s
 *
 * 1 + 8 * 20 + 1 = 162 = WEIR_HIST_BUCKETS. The widest bucket is that from 1.40 to 1.60 (14.3 %),
 * so no value differs from the middle of its bucket by more than 7.2 %.
 *
 * Finding a bucket needs no search. The highest set bit of the value and the bit below it select a
 * starting bucket. Half an octave has at most four bounds, so four comparisons without branches
 * give the distance from that bucket.
 */
#include <weir/metric.h>

#include <weir/annotate.h>

#define FIRST_BOUND_NS 1000LL
#define LAST_BOUND_NS  100000000000LL

/* One decade of the series, in ns. `unit` is a hundredth of the decade's first bound. */
#define R20(unit)                                                                                  \
	100 * (unit), 112 * (unit), 125 * (unit), 140 * (unit), 160 * (unit), 180 * (unit),        \
	    200 * (unit), 224 * (unit), 250 * (unit), 280 * (unit), 315 * (unit), 355 * (unit),    \
	    400 * (unit), 450 * (unit), 500 * (unit), 560 * (unit), 630 * (unit), 710 * (unit),    \
	    800 * (unit), 900 * (unit)

/* Number of entries that the comparisons may read beyond the last bucket. */
#define LOOK_AHEAD 4

static const int64_t upper_ns[WEIR_HIST_BUCKETS + LOOK_AHEAD] = {R20(10LL), R20(100LL), R20(1000LL),
    R20(10000LL), R20(100000LL), R20(1000000LL), R20(10000000LL), R20(100000000LL), LAST_BOUND_NS,
    INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

/* The starting buckets: two for each o = 9 .. 36, namely the number of bounds below 2^o and the
 * number of bounds below 2^o + 2^(o - 1). */
#define FIRST_OCTAVE 9
static const uint8_t begin[] = {0, 0, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46,
    49, 52, 55, 58, 61, 64, 67, 70, 73, 76, 79, 83, 85, 89, 91, 95, 97, 101, 103, 107, 109, 113,
    115, 119, 121, 125, 127, 131, 133, 137, 139, 143, 145, 149, 151, 155, 157, 161};

WEIR_HOT int weir_hist_bucket(int64_t ns)
{
	if (ns <= FIRST_BOUND_NS)
		return 0;
	if (WEIR_UNLIKELY(ns > LAST_BOUND_NS))
		return WEIR_HIST_BUCKETS - 1;
	int octave = 63 - __builtin_clzll((unsigned long long)ns);
	int half = (int)(ns >> (octave - 1)) & 1;
	int b = begin[2 * (octave - FIRST_OCTAVE) + half];
	const int64_t *u = upper_ns + b;
	return b + (ns > u[0]) + (ns > u[1]) + (ns > u[2]) + (ns > u[3]);
}

int64_t weir_hist_upper_ns(int b)
{
	if (b < 0)
		return 0;
	return b < WEIR_HIST_BUCKETS ? upper_ns[b] : INT64_MAX;
}

uint64_t weir_hist_total(const struct weir_hist *h)
{
	uint64_t total = 0;

	for (int b = 0; b < WEIR_HIST_BUCKETS; b++)
		total += h->count[b];
	return total;
}

/* Returns the upper bound of the bucket that contains the value of rank ceil(q * total), counted
 * from 1. */
int64_t weir_hist_quantile_ns(const struct weir_hist *h, double q)
{
	uint64_t total = weir_hist_total(h), seen = 0;

	if (total == 0)
		return 0;
	q = q > 0 ? (q < 1 ? q : 1) : 0;
	double exact = q * (double)total;
	uint64_t rank = (uint64_t)exact;
	rank += (double)rank < exact || rank == 0;
	for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
		seen += h->count[b];
		if (seen >= rank)
			return upper_ns[b];
	}
	return INT64_MAX;
}

void weir_hist_add(struct weir_hist *into, const struct weir_hist *from)
{
	for (int b = 0; b < WEIR_HIST_BUCKETS; b++)
		into->count[b] += from->count[b];
	into->sum_ns += from->sum_ns;
}
