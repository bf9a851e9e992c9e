/* SPDX-License-Identifier: MIT */
/*
 * Latency histograms of the load generator: log-linear, like HdrHistogram (G. Tene).
 *
 * Durations from 1 us to 137 s (2^10 to 2^37 ns) fall into 64 equal buckets per power of two. The
 * width of a bucket is at most 1/64 of its lower bound, so its middle is at most 0.8 % off. Shorter
 * and longer durations have one bucket each. The framework's histogram (weir/metric.h) is coarser
 * to save memory, since a server has one per stage and class.
 *
 * Plain data without locks: the caller must serialise access.
 */
#ifndef WEIR_LOAD_HDR_H
#define WEIR_LOAD_HDR_H

#include <stdint.h>

#define HDR_SUB_BITS 6
#define HDR_LOW_BIT  10
#define HDR_HIGH_BIT 37
#define HDR_BUCKETS  (2 + ((HDR_HIGH_BIT - HDR_LOW_BIT) << HDR_SUB_BITS))

struct hdr {
	uint64_t total;
	int64_t sum_ns, min_ns, max_ns; /* exact; min and max are 0 while total is 0 */
	uint64_t count[HDR_BUCKETS];
};

/** Returns the bucket of a duration, 0..HDR_BUCKETS-1. Negative durations count as 0. The call
 * costs about 2 ns. */
int hdr_bucket(int64_t ns);

/** Return the bounds of bucket `b`, which counts values with lower <= v < upper. The upper bound of
 * the last bucket is INT64_MAX. */
int64_t hdr_lower_ns(int b);
int64_t hdr_upper_ns(int b);

/** Counts `n` values of `ns`. The call costs about 3 ns. */
void hdr_add(struct hdr *h, int64_t ns, uint64_t n);

/** Adds the counts of `from` to `into`. */
void hdr_merge(struct hdr *into, const struct hdr *from);

/** Returns the value at quantile `q` (0..1) in ns: the middle of its bucket, clamped to min..max.
 * Returns 0 if the histogram is empty, and the exact maximum for q = 1. */
int64_t hdr_quantile_ns(const struct hdr *h, double q);

/** Returns the exact mean in ns; 0 if the histogram is empty. */
double hdr_mean_ns(const struct hdr *h);

#endif
