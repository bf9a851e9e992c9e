/* SPDX-License-Identifier: MIT */
/* Histograms: every bound against a linear search; the 1-2-5 series; quantiles. */
#include <weir/metric.h>

#include <stdbool.h>
#include <stdlib.h>

#include "cunit_main.h"

static int searched(int64_t ns)
{
	int b = 0;

	while (ns > weir_hist_upper_ns(b))
		b++;
	return b;
}

static void test_bounds_are_inside(void)
{
	for (int b = 0; b < WEIR_HIST_BUCKETS - 1; b++) {
		int64_t upper = weir_hist_upper_ns(b);
		CU_ASSERT_TRUE(upper < weir_hist_upper_ns(b + 1));
		CU_ASSERT_EQUAL(weir_hist_bucket(upper), b);
		CU_ASSERT_EQUAL(weir_hist_bucket(upper + 1), b + 1);
		CU_ASSERT_EQUAL(weir_hist_bucket(upper - 1), searched(upper - 1));
	}
}

static void test_ends(void)
{
	CU_ASSERT_EQUAL(weir_hist_upper_ns(0), 1000);
	CU_ASSERT_EQUAL(weir_hist_upper_ns(WEIR_HIST_BUCKETS - 2), 100000000000LL);
	CU_ASSERT_EQUAL(weir_hist_upper_ns(WEIR_HIST_BUCKETS - 1), INT64_MAX);
	CU_ASSERT_EQUAL(weir_hist_upper_ns(WEIR_HIST_BUCKETS), INT64_MAX);
	CU_ASSERT_EQUAL(weir_hist_upper_ns(-1), 0);
	CU_ASSERT_EQUAL(weir_hist_bucket(INT64_MIN), 0);
	CU_ASSERT_EQUAL(weir_hist_bucket(0), 0);
	CU_ASSERT_EQUAL(weir_hist_bucket(INT64_MAX), WEIR_HIST_BUCKETS - 1);
}

/* Around every power of two, where the table of octaves changes, and at random. */
static void test_search(void)
{
	unsigned seed = 1;

	for (int bit = 0; bit < 40; bit++)
		for (int64_t d = -2; d <= 2; d++) {
			int64_t whole = (1LL << bit) + d, half = (3LL << bit) / 2 + d;
			CU_ASSERT_EQUAL(weir_hist_bucket(whole), searched(whole));
			CU_ASSERT_EQUAL(weir_hist_bucket(half), searched(half));
		}
	for (int i = 0; i < 200000; i++) {
		int64_t ns = ((int64_t)rand_r(&seed) << 8 ^ rand_r(&seed)) >> (rand_r(&seed) % 38);
		if (weir_hist_bucket(ns) != searched(ns))
			CU_FAIL_FATAL("a bucket differs from the one found by search");
	}
}

static bool is_bound(int64_t ns)
{
	return weir_hist_upper_ns(weir_hist_bucket(ns)) == ns;
}

/* The guarantees of metric.h: 1, 2 and 5 of every decade are bounds; no step is wider than 14.3
 * %. */
static void test_series(void)
{
	for (int64_t decade = 1000; decade <= 10000000000LL; decade *= 10) {
		CU_ASSERT_TRUE(is_bound(decade));
		CU_ASSERT_TRUE(is_bound(2 * decade));
		CU_ASSERT_TRUE(is_bound(5 * decade));
	}
	for (int b = 1; b < WEIR_HIST_BUCKETS - 1; b++) {
		double step = (double)weir_hist_upper_ns(b) / (double)weir_hist_upper_ns(b - 1);
		CU_ASSERT_TRUE(step > 1.10 && step < 1.143);
	}
}

static void put(struct weir_hist *h, int64_t ns, int n)
{
	h->count[weir_hist_bucket(ns)] += (uint64_t)n;
	h->sum_ns += (uint64_t)(ns * n);
}

static void test_quantiles(void)
{
	struct weir_hist h = {{0}, 0};

	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 0.5), 0);
	put(&h, 1000000, 90);
	put(&h, 2000000, 9);
	put(&h, 50000000, 1);
	CU_ASSERT_EQUAL(weir_hist_total(&h), 100);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 0), 1000000);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 0.9), 1000000);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 0.901), 2000000);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 0.99), 2000000);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 1), 50000000);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, 7), 50000000);
	CU_ASSERT_EQUAL(weir_hist_quantile_ns(&h, -1), 1000000);
}

static void test_add(void)
{
	struct weir_hist a = {{0}, 0}, b = {{0}, 0};

	put(&a, 1000, 2);
	put(&b, 1000, 3);
	put(&b, INT64_MAX / 4, 1);
	weir_hist_add(&a, &b);
	CU_ASSERT_EQUAL(a.count[0], 5);
	CU_ASSERT_EQUAL(a.count[WEIR_HIST_BUCKETS - 1], 1);
	CU_ASSERT_EQUAL(weir_hist_total(&a), 6);
	CU_ASSERT_EQUAL(a.sum_ns, 5000 + (uint64_t)(INT64_MAX / 4));
}

CUNIT_MAIN("hist", {"bounds are inside", test_bounds_are_inside}, {"ends", test_ends},
    {"search", test_search}, {"series", test_series}, {"quantiles", test_quantiles},
    {"add", test_add})
