/* SPDX-License-Identifier: MIT */
/* Pauses and pages of users; see think.h. */
#include "load/think.h"

#include <math.h>

#define PAGE_ALPHA 2.43

/* A Pareto distribution of this mean begins at mean * (alpha - 1) / alpha. */
static double pareto(double mean, double alpha, double u)
{
	return mean * (alpha - 1) / alpha * pow(u, -1 / alpha);
}

/* The mean of a lognormal distribution is exp(mu + sigma^2 / 2). The normal number is that of Box
 * and Muller (1958). */
static double lognormal(double mean, double sigma, double u, double v)
{
	return mean * exp(sigma * sqrt(-2 * log(u)) * cos(2 * M_PI * v) - sigma * sigma / 2);
}

int64_t load_think_ns(enum load_think law, int64_t mean_ns, double shape, double u, double v)
{
	double mean = (double)mean_ns, ns = mean;

	if (law == LOAD_THINK_EXPONENTIAL)
		ns = mean * -log(u);
	else if (law == LOAD_THINK_PARETO)
		ns = pareto(mean, shape, u);
	else if (law == LOAD_THINK_LOGNORMAL)
		ns = lognormal(mean, shape, u, v);
	return (int64_t)fmin(ns, (double)LOAD_THINK_MAX_NS);
}

uint32_t load_page_files(double u)
{
	return (uint32_t)fmin(pow(u, -1 / PAGE_ALPHA), LOAD_PAGE_FILES_MAX);
}
