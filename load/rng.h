/* SPDX-License-Identifier: MIT */
/*
 * Generates random numbers with random access: number k of a key is SplitMix64's mix of key + (k +
 * 1) * gamma (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). The
 * random numbers of an arrival therefore depend only on the seed and on the number of the arrival,
 * not on earlier draws. Pure functions without state.
 */
#ifndef WEIR_LOAD_RNG_H
#define WEIR_LOAD_RNG_H

#include <math.h>
#include <stdint.h>

/** Return number `k` of `key`. The call costs about 1 ns. */
static inline uint64_t rng_at(uint64_t key, uint64_t k)
{
	uint64_t z = key + (k + 1) * 0x9e3779b97f4a7c15u; /* gamma and mix from the paper */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/** Return the key of stream `what` of a seed. The key is mixed twice: otherwise the keys of
 * neighbouring streams would be neighbouring numbers of one stream. */
static inline uint64_t rng_key(uint64_t seed, uint64_t what)
{
	return rng_at(rng_at(seed, 0), what);
}

/** Convert 64 random bits to a real number in (0, 1]. It is never 0, so its logarithm is finite. */
static inline double rng_unit(uint64_t bits)
{
	return ((double)(bits >> 11) + 1.0) * 0x1p-53;
}

/** Return an exponentially distributed value with mean 1, by inversion. The call costs about 10
 * ns. */
static inline double rng_exp(uint64_t bits)
{
	return -log(rng_unit(bits));
}

/** Return a whole number in 0..n-1; n must be at least 1. */
static inline uint64_t rng_below(uint64_t bits, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

#endif
