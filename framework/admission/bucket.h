/* SPDX-License-Identifier: MIT */
/*
 * A token bucket, exact at any rate, for the policies that admit so many a second.
 *
 * Tokens accrue continuously with time, not per tick: SEDA's slept in whole milliseconds and so
 * silently capped every rate at 1,000 per second. Over any interval t at most depth + rate * t
 * tokens are taken, net of what is given back. Times may come out of order, as those of two
 * senders' batches do: no token is made twice for the same time.
 */
#ifndef WEIR_ADMISSION_BUCKET_H
#define WEIR_ADMISSION_BUCKET_H

#include <stdint.h>

struct bucket {
	double tokens;
	int64_t at_ns; /* time to which tokens have accrued */
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

/** Take up to `n` whole tokens; returns how many. */
static inline int bucket_take(struct bucket *b, int n)
{
	/* Accrual in small steps may leave 0.99999999 of a token: a hair more is one. */
	double whole = b->tokens + 1e-9;
	int m = whole >= n ? n : whole > 0 ? (int)whole : 0;

	b->tokens -= m;
	return m;
}

#endif
