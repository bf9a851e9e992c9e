/* SPDX-License-Identifier: MIT */
/* Results: names, sums over classes, and that all memory of a result is freed (with ASan). */
#include "load/result.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(load_outcome_name[LOAD_OK], "ok");
	CU_ASSERT_STRING_EQUAL(load_outcome_name[LOAD_GONE], "gone");
	CU_ASSERT_STRING_EQUAL(load_error_name[LOAD_EREFUSED], "refused");
	CU_ASSERT_STRING_EQUAL(load_error_name[LOAD_EUNSENT], "unsent");
	for (int i = 0; i < LOAD_N_OUTCOMES; i++)
		CU_ASSERT_PTR_NOT_NULL_FATAL(load_outcome_name[i]);
	for (int i = 0; i < LOAD_N_ERRORS; i++)
		CU_ASSERT_PTR_NOT_NULL_FATAL(load_error_name[i]);
}

static void latency(struct load_class_result *c, enum load_outcome o, int64_t ns, uint64_t n)
{
	if (!c->latency[o])
		c->latency[o] = calloc(1, sizeof(*c->latency[o]));
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->latency[o]);
	hdr_add(c->latency[o], ns, n);
	c->outcome[o] += n;
	c->offered += n;
}

static void fill(struct load_phase_result *phase)
{
	latency(&phase->class[0], LOAD_OK, 1000000, 10);
	latency(&phase->class[1], LOAD_OK, 3000000, 5);
	latency(&phase->class[1], LOAD_SHED, 2000, 7);
	phase->class[0].error[LOAD_ERESET] = 2;
	phase->class[1].error[LOAD_ERESET] = 3;
	phase->class[0].attempts = 11;
	phase->class[1].retries = 4;
	phase->class[0].bytes_in = 100;
	phase->class[1].bytes_out = 50;
	latency(&phase->class[2], LOAD_OK, 1, 1000); /* a class the plan does not have */
}

static void test_total(void)
{
	static struct load_plan plan = {.n_classes = 2};
	struct load_result result = {.n_phases = 2};
	struct load_class_result sum = {0};

	result.phase = calloc(2, sizeof(*result.phase));
	result.second = calloc(3, sizeof(*result.second));
	result.n_seconds = 3;
	CU_ASSERT_PTR_NOT_NULL_FATAL(result.phase);
	fill(&result.phase[1]);
	CU_ASSERT_EQUAL(load_phase_total(&plan, &result.phase[0], &sum), 0);
	CU_ASSERT_EQUAL(sum.offered, 0);
	CU_ASSERT_PTR_NULL(sum.latency[LOAD_OK]);
	CU_ASSERT_EQUAL(load_phase_total(&plan, &result.phase[1], &sum), 0);
	CU_ASSERT_EQUAL(sum.offered, 22);
	CU_ASSERT_EQUAL(sum.outcome[LOAD_OK], 15);
	CU_ASSERT_EQUAL(sum.outcome[LOAD_SHED], 7);
	CU_ASSERT_EQUAL(sum.error[LOAD_ERESET], 5);
	CU_ASSERT_EQUAL(sum.attempts, 11);
	CU_ASSERT_EQUAL(sum.retries, 4);
	CU_ASSERT_EQUAL(sum.bytes_in, 100);
	CU_ASSERT_EQUAL(sum.bytes_out, 50);
	CU_ASSERT_EQUAL(sum.latency[LOAD_OK]->total, 15);
	CU_ASSERT_EQUAL(sum.latency[LOAD_OK]->max_ns, 3000000);
	CU_ASSERT_EQUAL(sum.latency[LOAD_SHED]->sum_ns, 14000);
	CU_ASSERT_PTR_NULL(sum.latency[LOAD_TIMEOUT]);
	CU_ASSERT_EQUAL(result.phase[1].class[0].latency[LOAD_OK]->total, 10);
	load_class_result_fini(&sum);
	CU_ASSERT_PTR_NULL(sum.latency[LOAD_OK]);
	CU_ASSERT_EQUAL(sum.offered, 0);
	load_result_fini(&result);
	CU_ASSERT_PTR_NULL(result.phase);
	CU_ASSERT_EQUAL(result.n_seconds, 0);
	load_result_fini(&result); /* one that is all zero */
}

CUNIT_MAIN("result", {"names", test_names}, {"total of a phase", test_total})
