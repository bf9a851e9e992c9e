/* SPDX-License-Identifier: MIT */
/*
 * Draws durations from distributions.
 *
 * Uniform numbers come from SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, OOPSLA 2014), which allows random access: number k of a seed is the mix of seed + k *
 * gamma. Exponential variates are made by inversion, normal ones by the method of Box and Muller
 * (1958).
 */
#include "dist.h"

#include <math.h>

/* Number `k` of SplitMix64. The constants are those of the paper. */
static uint64_t splitmix(uint64_t seed, uint64_t k)
{
	uint64_t z = seed + (k + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform number `k`, in (0, 1]. It is never 0, so that its logarithm exists. */
static double uniform(uint64_t seed, uint64_t k)
{
	return ((double)(splitmix(seed, k) >> 11) + 1.0) * 0x1p-53;
}

static double normal(uint64_t seed, uint64_t k)
{
	return sqrt(-2.0 * log(uniform(seed, k))) * cos(2.0 * M_PI * uniform(seed, k + 1));
}

/* Draw exp(mu + sigma N), which has the mean exp(mu + sigma^2 / 2). mu is chosen so that the mean
 * is time_ns. */
static double lognormal(const struct dist *d, uint64_t seed, uint64_t k)
{
	return (double)d->time_ns * exp(d->sigma * normal(seed, k) - d->sigma * d->sigma / 2.0);
}

int64_t dist_draw_ns(const struct dist *d, uint64_t i)
{
	/* A draw uses up to two uniform numbers. The seed is mixed, since neighbouring seeds of the
	 * raw generator are far from independent. */
	uint64_t seed = splitmix((uint64_t)d->seed, 0), k = 2 * i;
	double ns = (double)d->time_ns;

	switch ((enum dist_kind)d->kind) {
	case DIST_CONST:
		break;
	case DIST_EXP:
		ns *= -log(uniform(seed, k));
		break;
	case DIST_BIMODAL:
		ns = uniform(seed, k) <= d->slow_share ? (double)d->slow_ns : ns;
		break;
	case DIST_LOGNORMAL:
		ns = lognormal(d, seed, k);
		break;
	}
	return ns < DIST_MAX_NS ? (int64_t)ns : (int64_t)DIST_MAX_NS;
}

double dist_mean_ns(const struct dist *d)
{
	if (d->kind != DIST_BIMODAL)
		return (double)d->time_ns;
	return (1.0 - d->slow_share) * (double)d->time_ns + d->slow_share * (double)d->slow_ns;
}
