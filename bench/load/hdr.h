/* SPDX-License-Identifier: MIT */
/*
 * Latency histograms of the load generator: log-linear, as HdrHistogram (G. Tene) has them.
 *
 * Durations from 1 us to 137 s (2^10 to 2^37 ns) fall into 64 equal buckets per power of two, so a
 * bucket is at most 1/64 of its value wide and its middle at most 0.8 % off; below and above there
 * is one bucket each. The framework's own histogram (weir/metric.h) is coarser: it is counted in
 * every stage and class of a server, this one only in a client.
 *
 * Plain data, no locks: one writer, or the caller's own order.
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

/** Bucket of a duration, 0..HDR_BUCKETS-1. Negative counts as 0. About 2 ns. */
int hdr_bucket(int64_t ns);

/** Bounds of bucket `b`: values in lower <= v < upper. The last one's upper bound is INT64_MAX. */
int64_t hdr_lower_ns(int b);
int64_t hdr_upper_ns(int b);

/** Count `n` values of `ns`. About 3 ns. */
void hdr_add(struct hdr *h, int64_t ns, uint64_t n);

/** `into` += `from`. */
void hdr_merge(struct hdr *into, const struct hdr *from);

/** The value at quantile `q` in 0..1 in ns: the middle of its bucket, but never outside of
 *  min..max. 0 when empty. q = 1 is the exact maximum. */
int64_t hdr_quantile_ns(const struct hdr *h, double q);

/** Mean in ns, exact; 0 when empty. */
double hdr_mean_ns(const struct hdr *h);

#endif
