/* SPDX-License-Identifier: MIT */
/*
 * A token bucket that is exact at any rate, for policies that admit a certain number of events per
 * second.
 *
 * Tokens accrue continuously with time, not per tick: SEDA slept in whole milliseconds and so
 * silently capped every rate at 1,000 per second. In any interval t at most depth + rate * t tokens
 * are taken, not counting returned ones. Successive calls may pass times that are out of order,
 * since each sender reads the clock itself; tokens never accrue twice for the same time.
 */
#ifndef WEIR_ADMISSION_BUCKET_H
#define WEIR_ADMISSION_BUCKET_H

#include <stdint.h>

struct bucket {
	double tokens;
	int64_t at_ns; /* time up to which tokens have accrued */
};

static inline void bucket_init(struct bucket *b, double depth, int64_t now_ns)
{
	b->tokens = depth;
	b->at_ns = now_ns;
}

static inline void bucket_fill(struct bucket *b, double rate_per_s, double depth, int64_t now_ns)
{
	if (now_ns > b->at_ns) {
		b->tokens += (double)(now_ns - b->at_ns) * 1e-9 * rate_per_s;
		b->at_ns = now_ns;
	}
	if (b->tokens > depth)
		b->tokens = depth;
}

/** Take up to `n` whole tokens. Returns how many were taken. */
static inline int bucket_take(struct bucket *b, int n)
{
	/* Rounding in small steps may leave 0.99999999 of a token, which must count as one. */
	double whole = b->tokens + 1e-9;
	int m = whole >= n ? n : whole > 0 ? (int)whole : 0;

	b->tokens -= m;
	return m;
}

#endif
