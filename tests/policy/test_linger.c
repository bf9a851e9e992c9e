/* SPDX-License-Identifier: MIT */
/* Batches that wait for more events (cohort.linger) in virtual time: events arrive a millisecond apart and
 * take no time, so that all waits are known. */
#include "runs.h"

#include "sim/group_search.h"

static struct sim_config c;

static void fill(bool group, int threads, int batch_max, int64_t linger_ns)
{
	struct sim_dist none = {.kind = SIM_CONST, .mean_ns = 0};

	runs_one_stage(&c, none, 1, threads, 1000, 10 * NS_PER_S);
	if (group) {
		group_search_fill(threads, &next_fifo, 1, 0.5, &c);
		c.group[0].cost = (struct sim_group_costs){0};
		c.n_stages = c.n_routes = c.n_sources = 1;
		c.route[0] = (struct sim_route){.name = "all", .n = 1};
		c.stage[0].service = none;
		c.source[0] = (struct sim_source){.name = "all", .rate_per_s = 1000};
		c.warmup_ns = 5 * NS_PER_S;
		c.measured_ns = 10 * NS_PER_S;
		c.laws |= SIM_LAWS_GROUPS;
	}
	c.stage[0].batch_max = batch_max;
	c.stage[0].linger_ns = linger_ns;
	c.source[0].arrivals = SIM_UNIFORM;
	c.laws |= SIM_LAW_LINGER;
}

static void waits(double mean_ms, double most_ms)
{
	struct sim_result *r = runs_do(&c);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT(r->law[__builtin_ctz(SIM_LAW_LINGER)].checked > 100 || c.stage[0].linger_ns == 0);
	CU_ASSERT(runs_near("mean wait", hdr_mean_ns(&r->stage[0].wait) * 1e-6, mean_ms, 0.02));
	CU_ASSERT(runs_near(
	    "longest", (double)hdr_quantile_ns(&r->stage[0].wait, 1) * 1e-6, most_ms, 0.02));
	sim_result_free(r);
}

static void test_waits(void)
{
	for (int k = 0; k < 4; k++) {
		bool group = k & 1;
		int threads = 1 + k / 2; /* two of them do not divide a batch */
		fill(group, threads, 10, 0);
		waits(0, 0);
		fill(group, threads, 10, 5500000); /* batches of six */
		waits(3, 5.5);
		fill(group, threads, 10, 100 * NS_PER_MS); /* full ones */
		waits(4.5, 9);
		fill(group, threads, 1, 100 * NS_PER_MS);
		waits(0, 0);
	}
}

static void test_refused(void)
{
	struct sim_result *r = NULL;

	fill(true, 1, 10, NS_PER_MS);
	c.stage[0].local = SIM_LOCAL_KEPT;
	CU_ASSERT_EQUAL(sim_run(&c, &r), WEIR_EINVAL);
	sim_result_free(r);
}

CUNIT_MAIN("batches that linger", {"waits", test_waits}, {"refused", test_refused})
