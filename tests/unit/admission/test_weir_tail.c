/* SPDX-License-Identifier: MIT */
/* Policy `weir` steers for shorter waits where the slow services take most of the objective. */
#include "admission/admission.h"

#include "classes.h"
#include "cunit_main.h"

#define MS 1000000LL

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};

/* The part of the only class that is admitted when twice what 4 threads can do has been offered for a second, the
 * wait is 11 ms of an objective of 100, and of a hundred services of 5 ms the slowest takes `p99_ms`. */
static double part_with(int64_t p99_ms)
{
	admission_weir.init(state, &own, 0);
	for (int t = 1; t <= 100; t++) {
		struct admission_sample sample = {.now_ns = t * 10 * MS,
		    .span_ns = 10 * MS,
		    .n_classes = 1,
		    .threads = 4,
		    .length = 16,
		    .limit = 4096,
		    .work_ns = 44 * MS,
		    .cost_ns = 5 * MS,
		    .slo_ns = 100 * MS,
		    .service_p99_ns = p99_ms * MS};
		sample.class[0].offered = 16;
		classes_default(&sample);
		admission_weir.tick(state, &own, &sample);
	}
	return admission_weir.part(state, 0);
}

static void test_tail(void)
{
	/* 8 ms are steered for; the wait is 3 ms longer, and half an objective takes the whole stage off. */
	double calm = (1 - 3.0 / 50) / 2;

	CU_ASSERT_DOUBLE_EQUAL(part_with(0), calm, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(part_with(84), calm, 1e-3); /* half of what it leaves: 8 ms */
	CU_ASSERT_DOUBLE_EQUAL(part_with(88), (1 - 5.0 / 50) / 2, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(part_with(90), (1 - 6.0 / 50) / 2, 1e-3); /* 5 ms, and not below: */
	CU_ASSERT_DOUBLE_EQUAL(part_with(99), part_with(90), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_with(300), part_with(90), 1e-9);
}

CUNIT_MAIN("weir tail", {"slow services", test_tail})
