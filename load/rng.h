/* SPDX-License-Identifier: MIT */
/* Random numbers of the load generator and the simulator. The numbers of an arrival depend only on
 * the seed and on the number of the arrival, not on earlier draws. Pure functions without state. */
#ifndef WEIR_LOAD_RNG_H
#define WEIR_LOAD_RNG_H

#include <math.h>
#include <stdint.h>

#include <weir/random.h>

/** Return the key of stream `what` of a seed. The key is mixed twice. After mixing once, the keys
 * of streams 1, 2, 3 ... would be consecutive numbers of one stream. */
static inline uint64_t rng_key(uint64_t seed, uint64_t what)
{
	return weir_random_at(weir_random_at(seed, 0), what);
}

/** Return an exponentially distributed value with mean 1, by inversion. The call costs about 10
 * ns. */
static inline double rng_exp(uint64_t bits)
{
	return -log(weir_random_unit(bits));
}

/** Return a whole number in 0..n-1; n must be at least 1. */
static inline uint64_t rng_below(uint64_t bits, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

#endif
