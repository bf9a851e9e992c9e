/* SPDX-License-Identifier: MIT */
/* Axes: round ends, round ticks, and positions within 0..1 for any value. */
#include "report/scale.h"

#include <math.h>

#include "cunit_main.h"

static void test_linear(void)
{
	struct scale s = scale_linear(1050);
	double tick[SCALE_TICKS_MAX];

	CU_ASSERT_DOUBLE_EQUAL(s.high, 1250, 1e-9);
	CU_ASSERT_EQUAL(scale_ticks(&s, 5, tick), 6);
	CU_ASSERT_DOUBLE_EQUAL(tick[1], 250, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(scale_at(&s, 625), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(scale_at(&s, -3), 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(scale_at(&s, 1e9), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(scale_linear(1000).high, 1000, 1e-9);
}

static void test_log(void)
{
	struct scale s = scale_log(0.0011, 0.4);
	double tick[SCALE_TICKS_MAX];

	CU_ASSERT_DOUBLE_EQUAL(s.low, 0.001, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(s.high, 0.5, 1e-12);
	CU_ASSERT_EQUAL(scale_ticks(&s, 5, tick), 3); /* 1, 10, 100 ms */
	CU_ASSERT_DOUBLE_EQUAL(tick[1], 0.01, 1e-12);
	s = scale_log(100, 1000);
	CU_ASSERT_EQUAL(scale_ticks(&s, 8, tick), 4); /* 100, 200, 500, 1000 */
	CU_ASSERT_DOUBLE_EQUAL(scale_at(&s, sqrt(1e5)), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(scale_at(&s, 0), 0, 1e-9);
}

static void test_whole(void)
{
	struct scale s = scale_exact(2.7);
	double tick[SCALE_TICKS_MAX];

	s.whole = true;
	CU_ASSERT_EQUAL(scale_ticks(&s, 8, tick), 3);
	CU_ASSERT_DOUBLE_EQUAL(tick[2], 2, 1e-9);
}

static void test_senseless(void)
{
	const double values[] = {0, -1, 1e-300, 1e300, INFINITY, -INFINITY, NAN};
	double tick[SCALE_TICKS_MAX];

	for (int i = 0; i < 7; i++) {
		for (int k = 0; k < 7; k++) {
			struct scale s[] = {scale_log(values[i], values[k]),
			    scale_linear(values[i]), scale_exact(values[k])};
			for (int j = 0; j < 3; j++) {
				double at = scale_at(&s[j], values[k]);
				int n = scale_ticks(&s[j], 5, tick);
				CU_ASSERT_TRUE(s[j].low < s[j].high);
				CU_ASSERT_TRUE(at >= 0 && at <= 1);
				CU_ASSERT_TRUE(n >= 0 && n <= SCALE_TICKS_MAX);
			}
		}
	}
}

CUNIT_MAIN("scale", {"linear", test_linear}, {"logarithmic", test_log}, {"whole ticks", test_whole},
    {"senseless bounds", test_senseless})
