/* SPDX-License-Identifier: MIT */
/* Load points and their figures, from runs with known figures. */
#include "report/rundata.h"

#include "report/reading.h"

static void test_points(void)
{
	struct made_up m = reading_plain("run", 1);
	struct rundata run;
	double v[3];

	m.rounds = 4;
	m.no_noise = true;
	m.n_loads = 6; /* 0.5 1 2 5 10 0.1 */
	reading_read(&m, &run);
	CU_ASSERT_EQUAL_FATAL(run.n_points, 6);
	CU_ASSERT_STRING_EQUAL(run.point[0].name, "0.1x");
	CU_ASSERT_STRING_EQUAL(run.point[5].name, "10x");
	CU_ASSERT_EQUAL(run.point[5].rounds, 4);
	/* the warm-up, though it has the rate of another point */
	CU_ASSERT_EQUAL(run.point_of[0], -1);
	CU_ASSERT_TRUE(rundata_over_rounds(&run, 5, RUN_GOODPUT, v));
	CU_ASSERT_DOUBLE_EQUAL(v[0], 980, 2);
	CU_ASSERT_DOUBLE_EQUAL(v[1], v[2], 1e-6);
	CU_ASSERT_TRUE(rundata_offered(&run, 5, v));
	CU_ASSERT_DOUBLE_EQUAL(v[0], 10000, 1);
	CU_ASSERT_TRUE(rundata_over_rounds(&run, 5, RUN_SHED, v));
	CU_ASSERT_DOUBLE_EQUAL(v[0] + 0.098 + 0.04 * 0.902, 1, 0.001);
	CU_ASSERT_TRUE(rundata_over_rounds(&run, 0, RUN_P50, v));
	CU_ASSERT_DOUBLE_EQUAL(v[0], 0.004, 0.0001);
	rundata_fini(&run);
}

static void test_cpu(void)
{
	struct made_up m = reading_plain("run", 1);
	struct rundata run;
	double v[3];

	m.phase_s = 20;
	reading_read(&m, &run);
	CU_ASSERT_TRUE(rundata_over_rounds(&run, 1, RUN_CPU, v)); /* 1x: 0.9 s a second */
	CU_ASSERT_DOUBLE_EQUAL(v[0], 0.0009, 0.00005);
	rundata_fini(&run);
	m.no_server = true;
	reading_read(&m, &run);
	CU_ASSERT_FALSE(rundata_over_rounds(&run, 1, RUN_CPU, v));
	rundata_fini(&run);
}

static void test_latency(void)
{
	struct made_up m = reading_plain("run", 1);
	struct rundata run;
	struct hdr *all = malloc(sizeof(*all)), *one = malloc(sizeof(*one));

	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	CU_ASSERT_PTR_NOT_NULL_FATAL(one);
	reading_read(&m, &run);
	rundata_latency(&run, 0, -1, all);
	CU_ASSERT_EQUAL(all->total, run_good(run.result.phase[1].class[0].outcome) +
					run_good(run.result.phase[1].class[1].outcome));
	rundata_latency(&run, 0, 1, one);
	CU_ASSERT_EQUAL(one->total, run_good(run.result.phase[1].class[1].outcome));
	rundata_fini(&run);
	free(all);
	free(one);
}

/* Every request has exactly one outcome. The made-up runs must obey that, or they test nothing. */
static void test_books(void)
{
	struct made_up m = reading_plain("run", 3);
	struct rundata run;

	m.n_loads = 5;
	m.errors = 0.02;
	reading_read(&m, &run);
	for (int p = 0; p < run.plan.n_phases; p++) {
		for (int c = 0; c < 2; c++) {
			const struct load_class_result *r = &run.result.phase[p].class[c];
			uint64_t sum = 0;
			for (int k = 0; k < LOAD_N_OUTCOMES; k++)
				sum += r->outcome[k];
			CU_ASSERT_EQUAL(sum, r->offered);
		}
	}
	rundata_fini(&run);
}

/* In a run that alternated with another one, the start of a phase comes from its seconds. */
static void test_turns(void)
{
	struct made_up m = reading_plain("run", 1);
	struct rundata run;

	m.pause_s = 30;
	reading_read(&m, &run);
	CU_ASSERT_DOUBLE_EQUAL(run.phase_at_s[0], 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(run.phase_at_s[1], 38, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(run.phase_at_s[2], 76, 1e-9);
	rundata_fini(&run);
}

static void test_name(void)
{
	struct made_up m = reading_plain("", 1);
	struct rundata run;

	reading_read(&m, &run);
	CU_ASSERT_PTR_NOT_NULL(strstr(run.name, ".json")); /* no label: the file name */
	rundata_fini(&run);
}

CUNIT_MAIN("rundata", {"load points", test_points}, {"CPU of the server", test_cpu},
    {"latency of classes", test_latency}, {"books", test_books}, {"turns", test_turns},
    {"name", test_name})
