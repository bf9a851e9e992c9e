/* SPDX-License-Identifier: MIT */
/* Draws durations from distributions, each with the requested mean. */
#include "sim.h"

#include <math.h>

#include "load/rng.h"

/* Maximum duration in multiples of the mean. Without it, one draw from the tail of a lognormal
 * distribution could dominate a short run. At sigma 1 the limit affects one draw in 10^8. */
#define LONGEST_MEANS 150

/* Return exp(sigma * normal - sigma^2 / 2), which has the mean 1. The normal variate is drawn by
 * the Box-Muller method. */
static double lognormal(double sigma, uint64_t a, uint64_t b)
{
	double normal = sqrt(-2 * log(weir_random_unit(a))) * cos(2 * M_PI * weir_random_unit(b));

	return exp(sigma * normal - sigma * sigma / 2);
}

static double bimodal(const struct sim_dist *d, uint64_t a)
{
	double fast = 1 / (1 - d->slow_share + d->slow_share * d->slow_ratio);

	return weir_random_unit(a) <= d->slow_share ? fast * d->slow_ratio : fast;
}

int64_t sim_draw_ns(const struct sim_dist *d, uint64_t key, uint64_t k)
{
	uint64_t a = weir_random_at(key, 2 * k);
	double x = 1;

	switch (d->kind) {
	case SIM_CONST:
		return d->mean_ns;
	case SIM_EXP:
		x = rng_exp(a);
		break;
	case SIM_BIMODAL:
		x = bimodal(d, a);
		break;
	case SIM_LOGNORMAL:
		x = lognormal(d->sigma, a, weir_random_at(key, 2 * k + 1));
		break;
	}
	return (int64_t)((double)d->mean_ns * (x < LONGEST_MEANS ? x : LONGEST_MEANS));
}
