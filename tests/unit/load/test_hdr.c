/* SPDX-License-Identifier: MIT */
/* Histograms: bucket borders, an error below 1.6 % over the whole range, quantiles compared with
 * sorted values. */
#include "load/hdr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/rng.h"

#include "cunit_main.h"

#define N_VALUES 20000

static int64_t values[N_VALUES];

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Buckets cover the whole range without gaps, and contain the values sorted into them. */
static void test_borders(void)
{
	CU_ASSERT_EQUAL(hdr_bucket(-5), 0);
	CU_ASSERT_EQUAL(hdr_lower_ns(0), 0);
	CU_ASSERT_EQUAL(hdr_upper_ns(HDR_BUCKETS - 1), INT64_MAX);
	CU_ASSERT_EQUAL(hdr_upper_ns(0), 1 << HDR_LOW_BIT);
	CU_ASSERT_EQUAL(hdr_lower_ns(HDR_BUCKETS - 1), 1LL << HDR_HIGH_BIT);
	CU_ASSERT_EQUAL(hdr_bucket(INT64_MAX), HDR_BUCKETS - 1);
	for (int b = 0; b < HDR_BUCKETS - 1; b++) {
		CU_ASSERT(hdr_lower_ns(b) < hdr_upper_ns(b));
		CU_ASSERT_EQUAL(hdr_upper_ns(b), hdr_lower_ns(b + 1));
		CU_ASSERT_EQUAL(hdr_bucket(hdr_lower_ns(b)), b);
		CU_ASSERT_EQUAL(hdr_bucket(hdr_upper_ns(b) - 1), b);
	}
}

/* Any single value between 1.1 us and 100 s is returned within 0.8 %, and its bucket is at most 1.6
 * % wide. A smaller and a larger value are added, so that the minimum and the maximum do not give
 * the answer. */
static void test_error(void)
{
	for (double v = 1100; v < 100e9; v *= 1.0007) {
		static struct hdr h;
		int64_t ns = (int64_t)v;
		int b = hdr_bucket(ns);
		memset(&h, 0, sizeof(h));
		hdr_add(&h, 1, 1);
		hdr_add(&h, ns, 2);
		hdr_add(&h, INT64_MAX / 8, 1);
		CU_ASSERT(fabs((double)hdr_quantile_ns(&h, 0.5) - v) <= 0.0079 * v + 1);
		CU_ASSERT((double)(hdr_upper_ns(b) - hdr_lower_ns(b)) <= 0.016 * v);
	}
}

static void test_quantiles(void)
{
	static struct hdr h;
	double sum = 0;

	memset(&h, 0, sizeof(h));
	for (int i = 0; i < N_VALUES; i++) {
		values[i] = (int64_t)(2e6 * rng_exp(weir_random_at(7, (uint64_t)i)));
		hdr_add(&h, values[i], 1);
		sum += (double)values[i];
	}
	qsort(values, N_VALUES, sizeof(values[0]), by_value);
	for (double q = 0.01; q < 1; q += 0.01) {
		double exact = (double)values[(int)ceil(q * N_VALUES - 1e-9) - 1];
		CU_ASSERT(fabs((double)hdr_quantile_ns(&h, q) - exact) <= 0.008 * exact + 512);
	}
	CU_ASSERT_EQUAL(hdr_quantile_ns(&h, 1), values[N_VALUES - 1]);
	CU_ASSERT_EQUAL(h.min_ns, values[0]);
	CU_ASSERT_EQUAL(h.max_ns, values[N_VALUES - 1]);
	CU_ASSERT_DOUBLE_EQUAL(hdr_mean_ns(&h), sum / N_VALUES, 1e-3);
}

static void test_few(void)
{
	static struct hdr h;

	CU_ASSERT_EQUAL(hdr_quantile_ns(&h, 0.5), 0);
	CU_ASSERT_EQUAL(hdr_mean_ns(&h), 0);
	hdr_add(&h, 5, 0);
	CU_ASSERT_EQUAL(h.total, 0);
	hdr_add(&h, 123456789, 3); /* all equal: exact at every quantile */
	CU_ASSERT_EQUAL(hdr_quantile_ns(&h, 0), 123456789);
	CU_ASSERT_EQUAL(hdr_quantile_ns(&h, 0.5), 123456789);
	CU_ASSERT_EQUAL(hdr_quantile_ns(&h, NAN), 123456789);
	CU_ASSERT_EQUAL(h.sum_ns, 3LL * 123456789);
	hdr_add(&h, 987654321, 3); /* half of them: rank 3 of 6, not 4 */
	CU_ASSERT_DOUBLE_EQUAL((double)hdr_quantile_ns(&h, 0.5), 123456789, 1e6);
	CU_ASSERT_DOUBLE_EQUAL((double)hdr_quantile_ns(&h, 0.51), 987654321, 8e6);
	hdr_add(&h, hdr_lower_ns(1700), 94); /* the largest is below the middle of its bucket */
	CU_ASSERT_EQUAL(hdr_quantile_ns(&h, 0.99), hdr_lower_ns(1700));
	hdr_add(&h, -7, 1);
	CU_ASSERT_EQUAL(h.min_ns, 0);
	hdr_add(&h, INT64_MAX, 5); /* the sum saturates */
	CU_ASSERT_EQUAL(h.sum_ns, INT64_MAX);
	CU_ASSERT_EQUAL(h.total, 106);
}

/* Merged parts equal the whole. */
static void test_merge(void)
{
	static struct hdr whole, part[3], merged;

	hdr_merge(&merged, &part[0]);
	CU_ASSERT_EQUAL(merged.total, 0);
	for (int i = 0; i < N_VALUES; i++) {
		int64_t ns = (int64_t)rng_below(weir_random_at(3, (uint64_t)i), 200000000);
		hdr_add(&whole, ns, 1);
		hdr_add(&part[i % 2], ns, 1);
	}
	for (int i = 0; i < 3; i++) /* the last one is empty */
		hdr_merge(&merged, &part[i]);
	CU_ASSERT_EQUAL(memcmp(&whole, &merged, sizeof(whole)), 0);
}

CUNIT_MAIN("hdr", {"borders", test_borders}, {"error over the range", test_error},
    {"quantiles", test_quantiles}, {"few values", test_few}, {"merge", test_merge})
