/* SPDX-License-Identifier: MIT */
/*
 * Maps durations to the buckets of log-linear histograms; see hdr.h.
 *
 *   bucket 0              below 2^10 ns
 *   1 + 64 * o + i        i-th 64th of the octave that begins at 2^(10 + o) ns
 *   HDR_BUCKETS - 1       2^37 ns (137 s) and more
 */
#include "load/hdr.h"

#define SUB_BUCKETS (1 << HDR_SUB_BITS)

int hdr_bucket(int64_t ns)
{
	if (ns < (int64_t)1 << HDR_LOW_BIT)
		return 0;
	if (ns >= (int64_t)1 << HDR_HIGH_BIT)
		return HDR_BUCKETS - 1;
	int octave = 63 - __builtin_clzll((unsigned long long)ns);
	int sub = (int)(ns >> (octave - HDR_SUB_BITS)) & (SUB_BUCKETS - 1);
	return 1 + ((octave - HDR_LOW_BIT) << HDR_SUB_BITS) + sub;
}

int64_t hdr_lower_ns(int b)
{
	if (b <= 0)
		return 0;
	int octave = (b - 1) >> HDR_SUB_BITS, sub = (b - 1) & (SUB_BUCKETS - 1);
	return (int64_t)(SUB_BUCKETS + sub) << (octave + HDR_LOW_BIT - HDR_SUB_BITS);
}

int64_t hdr_upper_ns(int b)
{
	return b < HDR_BUCKETS - 1 ? hdr_lower_ns(b + 1) : INT64_MAX;
}

/* Return the sum plus n * ns. It saturates at 292 years instead of overflowing. */
static int64_t add_ns(int64_t sum_ns, int64_t ns, uint64_t n)
{
	int64_t product, sum;

	if (__builtin_mul_overflow(ns, n, &product) ||
	    __builtin_add_overflow(sum_ns, product, &sum))
		return INT64_MAX;
	return sum;
}

static void widen(struct hdr *h, int64_t min_ns, int64_t max_ns)
{
	if (h->total == 0 || min_ns < h->min_ns)
		h->min_ns = min_ns;
	if (h->total == 0 || max_ns > h->max_ns)
		h->max_ns = max_ns;
}

void hdr_add(struct hdr *h, int64_t ns, uint64_t n)
{
	if (n == 0)
		return;
	if (ns < 0)
		ns = 0;
	widen(h, ns, ns);
	h->total += n;
	h->sum_ns = add_ns(h->sum_ns, ns, n);
	h->count[hdr_bucket(ns)] += n;
}

void hdr_merge(struct hdr *into, const struct hdr *from)
{
	if (from->total == 0)
		return;
	widen(into, from->min_ns, from->max_ns);
	into->total += from->total;
	into->sum_ns = add_ns(into->sum_ns, from->sum_ns, 1);
	for (int b = 0; b < HDR_BUCKETS; b++)
		into->count[b] += from->count[b];
}

static int64_t middle_ns(const struct hdr *h, int b)
{
	int64_t lower = hdr_lower_ns(b), middle = lower + (hdr_upper_ns(b) - lower) / 2;

	if (middle < h->min_ns)
		return h->min_ns;
	return middle < h->max_ns ? middle : h->max_ns;
}

/* Finds the bucket of the value of rank ceil(q * total), where ranks are counted from 1. */
int64_t hdr_quantile_ns(const struct hdr *h, double q)
{
	uint64_t seen = 0;

	if (h->total == 0)
		return 0;
	if (q >= 1)
		return h->max_ns;
	double exact = q > 0 ? q * (double)h->total : 0;
	uint64_t rank = (uint64_t)exact;
	rank += (double)rank < exact || rank == 0;
	for (int b = 0; b < HDR_BUCKETS; b++) {
		seen += h->count[b];
		if (seen >= rank)
			return middle_ns(h, b);
	}
	return h->max_ns;
}

double hdr_mean_ns(const struct hdr *h)
{
	return h->total ? (double)h->sum_ns / (double)h->total : 0;
}
