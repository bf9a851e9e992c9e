/* SPDX-License-Identifier: MIT */
/* The first seconds of a fresh server: service times are unknown and pools have one thread. At half
 * of the load that the fully grown pool can handle, nothing is refused. */
#include "runs.h"

#include "control/resize.h"

#define SEEDS    20
#define THREADS  4
#define LOAD     0.5
#define MS(n)    ((n)*NS_PER_MS)
#define FIRST_NS (3 * NS_PER_S)
#define QUIET_NS (20 * NS_PER_S) /* longer than any time-out of the resize policy */

static struct sim_config c;

/* Fraction of the requests in the first seconds of load that did not end well; nothing is sent for
 * `before_ns`. */
static double lost(struct sim_dist service, double cpu_share, int64_t before_ns, uint64_t seed)
{
	double rate_per_s = LOAD * THREADS * 1e9 / (double)service.mean_ns, part = 1;

	runs_one_stage(&c, service, cpu_share, THREADS, rate_per_s, before_ns + FIRST_NS);
	c.seed = seed;
	c.warmup_ns = 0;
	sim_class_defaults(&c);
	c.stage[0].admission = &admission_weir;
	c.stage[0].resize = &resize_weir;
	c.stage[0].threads_min = c.stage[0].threads_start = 1;
	c.stage[0].slo_ns = 500 * NS_PER_MS;
	c.source[0].deadline_ns = 500 * NS_PER_MS;
	c.source[0].phase[0] = (struct sim_phase){0, 1e-9};
	c.source[0].phase[1] = (struct sim_phase){before_ns, 1};
	struct sim_result *r = runs_do(&c);
	if (r)
		part = 1 - (double)r->class[0].in_time / (double)r->class[0].offered;
	sim_result_free(r);
	return part;
}

/* The worst loss of a run, over seeds and over pools that were idle for a short or a long time.
 * *mean: the mean of all runs. */
static double most_lost(struct sim_dist service, double cpu_share, double *mean)
{
	static const int64_t before_ns[] = {NS_PER_S, 20 * NS_PER_S};
	double most = 0, sum = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		for (int i = 0; i < 2; i++) {
			double part = lost(service, cpu_share, before_ns[i], seed);
			most = fmax(most, part);
			sum += part;
		}
	}
	*mean = sum / (2 * SEEDS);
	return most;
}

static void test_even_services(void)
{
	double mean;

	CU_ASSERT_EQUAL(
	    most_lost((struct sim_dist){.kind = SIM_CONST, .mean_ns = MS(5)}, 0, &mean), 0);
	CU_ASSERT_EQUAL(
	    most_lost((struct sim_dist){.kind = SIM_CONST, .mean_ns = MS(20)}, 0, &mean), 0);
	CU_ASSERT_EQUAL(
	    most_lost((struct sim_dist){.kind = SIM_CONST, .mean_ns = MS(1)}, 1, &mean), 0);
}

/* If the first service happens to take four times the mean, it is taken as typical for a tenth of a
 * second. */
static void test_uneven_services(void)
{
	double mean;

	CU_ASSERT(
	    most_lost((struct sim_dist){.kind = SIM_EXP, .mean_ns = MS(20)}, 0, &mean) <= 0.02);
	CU_ASSERT(mean <= 0.001);
	CU_ASSERT(
	    most_lost((struct sim_dist){.kind = SIM_EXP, .mean_ns = MS(10)}, 1, &mean) <= 0.02);
	CU_ASSERT(mean <= 0.001);
}

CUNIT_MAIN(
    "cold start", {"even services", test_even_services}, {"uneven services", test_uneven_services})
