/* SPDX-License-Identifier: MIT */
/* Admission policies as pure functions on a virtual clock. */
#include "admission/admission.h"

#include <stdlib.h>

#include "cunit_main.h"

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];

static int ask(const struct admission_policy *p, const struct weir_admission_spec *spec,
    int64_t now_ns, uint32_t length, uint32_t limit, int n, int *reason)
{
	struct admission_view v = {.now_ns = now_ns, .length = length, .limit = limit};

	return p->admit(state, spec, &v, 0, n, reason);
}

static void test_find(void)
{
	for (int i = 0; admission_at(i); i++) {
		CU_ASSERT_PTR_EQUAL(admission_find(admission_at(i)->name), admission_at(i));
		CU_ASSERT(admission_at(i)->state_size <= ADMISSION_STATE_MAX);
	}
	CU_ASSERT_PTR_NULL(admission_find("nonesuch"));
	CU_ASSERT_PTR_NULL(admission_at(-1));
}

static void test_none(void)
{
	struct weir_admission_spec spec = {0};
	int reason = 0;

	CU_ASSERT_EQUAL(ask(&admission_none, &spec, 1, 4000, 4096, 64, &reason), 64);
	CU_ASSERT_EQUAL(reason, 0);
}

static void test_threshold(void)
{
	struct weir_admission_spec spec = {.threshold = 100};
	int reason = 0;

	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 36, 4096, 64, &reason), 64);
	CU_ASSERT_EQUAL(reason, 0);
	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 90, 4096, 64, &reason), 10);
	CU_ASSERT_EQUAL(reason, WEIR_ETHRESHOLD);
	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 150, 4096, 1, &reason), 0);
	spec.threshold = -1; /* half the limit */
	CU_ASSERT_EQUAL(ask(&admission_threshold, &spec, 1, 30, 64, 5, &reason), 2);
}

static int ask_class(int64_t threshold, uint32_t length, int class_id, int n_classes, int n)
{
	struct weir_admission_spec spec = {.threshold = threshold};
	struct admission_view v = {.length = length, .limit = 4096, .n_classes = n_classes};
	int reason = 0;

	int m = admission_threshold.admit(state, &spec, &v, class_id, n, &reason);
	CU_ASSERT_EQUAL(reason, m < n ? WEIR_ETHRESHOLD : 0);
	return m;
}

/* Class k of K enters an empty queue up to threshold * (1 - k / 2K); K = 1 is the plain policy. */
static void test_threshold_of_classes(void)
{
	CU_ASSERT_EQUAL(ask_class(100, 0, 0, 1, 200), 100);
	CU_ASSERT_EQUAL(ask_class(100, 0, 0, 2, 200), 100);
	CU_ASSERT_EQUAL(ask_class(100, 0, 1, 2, 200), 75);
	CU_ASSERT_EQUAL(ask_class(100, 0, 3, 4, 200), 63); /* 62.5: in favour of the class */
	CU_ASSERT_EQUAL(ask_class(100, 74, 1, 2, 4), 1);
	CU_ASSERT_EQUAL(ask_class(100, 75, 1, 2, 4), 0);
	CU_ASSERT_EQUAL(ask_class(100, 75, 0, 2, 4), 4);
	CU_ASSERT_EQUAL(ask_class(100, 99, 0, 2, 4), 1);
}

/* However small the threshold, a stage at rest serves the lowest class, and no class gets more room
 * than a higher one. */
static void test_threshold_is_fair_at_rest(void)
{
	for (int64_t threshold = 1; threshold < 40; threshold++)
		for (int k = 0, above = 1000; k < WEIR_CLASSES_MAX; k++) {
			int m = ask_class(threshold, 0, k, WEIR_CLASSES_MAX, 1000);
			CU_ASSERT(m >= 1 && m <= above && m <= threshold);
			CU_ASSERT(2 * m >= threshold);
			above = m;
		}
}

/* Offered far too much in steps of `step_ns` over 10 s, the policy admits rate * t + burst. */
static void exact(double rate, int64_t step_ns, int n)
{
	struct weir_admission_spec spec = {.rate = rate, .burst = 5};
	const int64_t end_ns = 10000000000LL;
	double admitted = 0;
	int reason = 0;

	admission_rate.init(state, &spec, 0);
	for (int64_t t = 0; t <= end_ns; t += step_ns)
		admitted += ask(&admission_rate, &spec, t, 0, 4096, n, &reason);
	CU_ASSERT(admitted <= rate * 10 + 5 + 0.001);
	CU_ASSERT(admitted >= rate * 10 + 5 - 1.001);
	CU_ASSERT_EQUAL(reason, WEIR_ERATE);
}

static void test_rate_is_exact(void)
{
	exact(0.5, 1000000, 1);
	exact(7, 1000000, 3);
	exact(999.9, 137000, 2);
	exact(1000, 1000000, 6);
	exact(12345, 100000, 4); /* SEDA's stopped at 1,000 */
	exact(1e6, 2000, 4);
}

static void test_rate_gives_back(void)
{
	struct weir_admission_spec spec = {.rate = 10, .burst = 20};
	int reason = 0;

	admission_rate.init(state, &spec, 0);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 0, 0, 64, 15, &reason), 15);
	admission_rate.give_back(state, 15);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 0, 0, 64, 20, &reason), 20);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 0, 0, 64, 1, &reason), 0);
}

static void test_rate_clock_going_back(void)
{
	struct weir_admission_spec spec = {.rate = 1000, .burst = 1};
	int reason = 0;

	admission_rate.init(state, &spec, 1000000000);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1000000000, 0, 64, 1, &reason), 1);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1001000000, 0, 64, 1, &reason), 1);
	/* Another thread's batch began earlier: no token is made twice for that time. */
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1000500000, 0, 64, 1, &reason), 0);
	CU_ASSERT_EQUAL(ask(&admission_rate, &spec, 1001500000, 0, 64, 1, &reason), 0);
}

CUNIT_MAIN("admission", {"find by name", test_find}, {"none", test_none},
    {"threshold", test_threshold}, {"threshold by class", test_threshold_of_classes},
    {"threshold lets every class in at rest", test_threshold_is_fair_at_rest},
    {"rate is exact at any rate", test_rate_is_exact},
    {"rate gives tokens back", test_rate_gives_back},
    {"rate on times out of order", test_rate_clock_going_back})
