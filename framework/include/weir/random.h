/* SPDX-License-Identifier: MIT */
/*
 * Repeatable random numbers with random access: number k of a key is SplitMix64's mix of key + (k +
 * 1) * gamma (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
 * Pure functions without state, for any thread. Not for secrets.
 */
#ifndef WEIR_RANDOM_H
#define WEIR_RANDOM_H

#include <stdint.h>

#include <weir/annotate.h>

WEIR_C_BEGIN

/** Return number `k` of `key`, 64 bits. The sequences of neighbouring keys are correlated; to avoid
 *  that, use weir_random_at(key, 0) as the key. Costs about 1 ns. */
static inline uint64_t weir_random_at(uint64_t key, uint64_t k)
{
	uint64_t z = key + (k + 1) * 0x9e3779b97f4a7c15u; /* gamma and mix from the paper */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/** Convert 64 random bits to a real number in (0, 1]. It is never 0, so its logarithm is finite. */
static inline double weir_random_unit(uint64_t bits)
{
	return ((double)(bits >> 11) + 1.0) * 0x1p-53;
}

WEIR_C_END

#endif
