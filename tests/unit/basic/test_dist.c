/* SPDX-License-Identifier: MIT */
/*
 * Distributions against theory: mean and percentiles of 200,000 draws. The seeds are fixed, so
 * results are the same on every run and tolerances only cover the sample size.
 */
#include "basic/dist.h"

#include <math.h>
#include <stdlib.h>

#include <weir/random.h>

#include "cunit_main.h"

#define DRAWS 200000

static int64_t draws[DRAWS];

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Draw, sort, and return the mean in ns. */
static double draw_all(const struct dist *d)
{
	double sum = 0;

	for (int i = 0; i < DRAWS; i++) {
		draws[i] = dist_draw_ns(d, (uint64_t)i);
		sum += (double)draws[i];
	}
	qsort(draws, DRAWS, sizeof(draws[0]), by_value);
	return sum / DRAWS;
}

static double quantile(double q)
{
	return (double)draws[(int)(q * (DRAWS - 1))];
}

static void check_near(double value, double theory, double share)
{
	CU_ASSERT(fabs(value - theory) <= share * theory);
}

static void test_const(void)
{
	struct dist d = {.kind = DIST_CONST, .time_ns = 12345, .seed = 1};

	CU_ASSERT_EQUAL(draw_all(&d), 12345.0);
	CU_ASSERT_EQUAL(draws[0], 12345);
	CU_ASSERT_EQUAL(draws[DRAWS - 1], 12345);
	CU_ASSERT_EQUAL(dist_mean_ns(&d), 12345.0);
}

/* quantile q of an exponential is -mean * ln(1 - q) */
static void test_exp(void)
{
	for (int64_t seed = 1; seed <= 3; seed++) {
		struct dist d = {.kind = DIST_EXP, .time_ns = 1000000, .seed = seed};
		check_near(draw_all(&d), dist_mean_ns(&d), 0.01);
		check_near(quantile(0.10), 1e6 * -log(0.90), 0.03);
		check_near(quantile(0.50), 1e6 * -log(0.50), 0.02);
		check_near(quantile(0.90), 1e6 * -log(0.10), 0.02);
		check_near(quantile(0.99), 1e6 * -log(0.01), 0.03);
		CU_ASSERT(draws[0] >= 0);
	}
}

static void test_bimodal(void)
{
	struct dist d = {.kind = DIST_BIMODAL,
	    .time_ns = 1000,
	    .slow_ns = 100000,
	    .slow_share = 0.05,
	    .seed = 1};
	int slow = 0;

	check_near(draw_all(&d), 0.95 * 1000 + 0.05 * 100000, 0.03);
	check_near(dist_mean_ns(&d), 5950, 1e-9);
	for (int i = 0; i < DRAWS; i++) {
		CU_ASSERT(draws[i] == 1000 || draws[i] == 100000);
		slow += draws[i] == 100000;
	}
	check_near(slow, 0.05 * DRAWS, 0.03);
	/* the share at which a draw is just slow is its uniform number */
	d.slow_share = weir_random_unit(weir_random_at(weir_random_at(1, 0), 0));
	CU_ASSERT_EQUAL(dist_draw_ns(&d, 0), 100000);
	d.slow_share = nextafter(d.slow_share, 0);
	CU_ASSERT_EQUAL(dist_draw_ns(&d, 0), 1000);
	d.slow_share = 0;
	CU_ASSERT_EQUAL(draw_all(&d), 1000.0);
	d.slow_share = 1;
	CU_ASSERT_EQUAL(draw_all(&d), 100000.0);
}

/* quantile q of a lognormal of mean m is m * exp(sigma * z(q) - sigma^2 / 2) */
static void test_lognormal(void)
{
	struct dist d = {.kind = DIST_LOGNORMAL, .time_ns = 1000000, .sigma = 1, .seed = 1};

	check_near(draw_all(&d), dist_mean_ns(&d), 0.02);
	check_near(quantile(0.50), 1e6 * exp(-0.5), 0.02);
	check_near(quantile(0.90), 1e6 * exp(1.2815516 - 0.5), 0.02);
	check_near(quantile(0.99), 1e6 * exp(2.3263479 - 0.5), 0.04);
	check_near(quantile(0.10), 1e6 * exp(-1.2815516 - 0.5), 0.02);
	d.sigma = 0;
	check_near(draw_all(&d), 1e6, 1e-6);
	CU_ASSERT(draws[DRAWS - 1] - draws[0] <= 1);
}

static void test_seeds(void)
{
	struct dist a = {.kind = DIST_EXP, .time_ns = 1000000, .seed = 1}, b = a;
	int same = 0;

	b.seed = 2;
	for (uint64_t i = 0; i < 1000; i++) {
		CU_ASSERT_EQUAL(dist_draw_ns(&a, i), dist_draw_ns(&a, i));
		same += dist_draw_ns(&a, i) == dist_draw_ns(&b, i);
	}
	CU_ASSERT(same < 5);
}

/* Neighbouring draws and neighbouring seeds are not correlated. */
static void test_independence(void)
{
	struct dist a = {.kind = DIST_EXP, .time_ns = 1000000, .seed = 7}, b = a;
	double next = 0, seeds = 0;

	b.seed = 8;
	for (uint64_t i = 0; i < DRAWS; i++) {
		double x = (double)dist_draw_ns(&a, i) / 1e6 - 1;
		next += x * ((double)dist_draw_ns(&a, i + 1) / 1e6 - 1);
		seeds += x * ((double)dist_draw_ns(&b, i) / 1e6 - 1);
	}
	/* the standard deviation of a mean of products of independent values is 1 / sqrt(DRAWS) */
	CU_ASSERT(fabs(next / DRAWS) < 4 / sqrt(DRAWS));
	CU_ASSERT(fabs(seeds / DRAWS) < 4 / sqrt(DRAWS));
}

static void test_bounded(void)
{
	struct dist d = {.kind = DIST_LOGNORMAL, .time_ns = 60000000000, .sigma = 4, .seed = 1};

	draw_all(&d);
	CU_ASSERT_EQUAL(draws[DRAWS - 1], (int64_t)DIST_MAX_NS);
	CU_ASSERT(draws[0] >= 0);
	d = (struct dist){.kind = DIST_EXP, .time_ns = 0, .seed = 1};
	draw_all(&d);
	CU_ASSERT_EQUAL(draws[DRAWS - 1], 0);
}

CUNIT_MAIN("dist", {"const", test_const}, {"exp", test_exp}, {"bimodal", test_bimodal},
    {"lognormal", test_lognormal}, {"seeds", test_seeds}, {"independence", test_independence},
    {"bounded", test_bounded})
