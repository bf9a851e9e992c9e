/* SPDX-License-Identifier: MIT */
/* What else core groups may have in virtual time, against exact results of queueing theory: the
 * discipline `shortest`, replicas, replicated stages and sources whose requests the cores read. */
#include "sim/group_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "unit/cunit_main.h"

#define SERVICE_NS NS_PER_MS
#define LOAD       0.7
#define REQUESTS   60000

static struct sim_config c;

/* `n` stages on `cores` cores, exponential services of a millisecond in all, scheduling costs
 * nothing. */
static void fill(int cores, int n)
{
	group_search_fill(11, &next_fifo, cores, LOAD, &c);
	c.group[0].cost = (struct sim_group_costs){0};
	c.n_stages = n;
	c.n_routes = c.n_sources = 1;
	c.route[0] = (struct sim_route){.n = n};
	for (int i = 0; i < n; i++) {
		c.route[0].stage[i] = i;
		c.stage[i].service = (struct sim_dist){SIM_EXP, SERVICE_NS / n, 0, 0, 0};
		c.stage[i].batch_max = 1;
		c.stage[i].local = SIM_LOCAL_NEVER;
	}
	c.source[0].rate_per_s = LOAD * cores * 1e9 / SERVICE_NS;
	c.measured_ns = (int64_t)(REQUESTS / c.source[0].rate_per_s * 1e9);
	c.warmup_ns = c.measured_ns / 20;
	c.laws = SIM_LAWS_SERVER | SIM_LAWS_GROUPS;
}

/* Return the mean response time in services. */
static double run(struct sim_group_result *g)
{
	struct sim_result *r = NULL;
	int rc = sim_run(&c, &r);

	if (rc != 0)
		printf("%s\n", r ? r->breach : "memory");
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	double mean = hdr_mean_ns(&r->class[0].response) / SERVICE_NS;
	*g = r->group[0];
	sim_result_free(r);
	return mean;
}

/* M/G/1 with the shortest first, without interruption (Miller and Schrage, 1966): an event of work x
 * waits for rho E[S^2] / (2 E[S] (1 - rho(x))^2), where rho(x) is the load of the shorter ones. For
 * exponential services of mean 1, E[S^2] = 2 and rho(x) = rho (1 - (1 + x) exp(-x)). */
static double shortest_response(double load)
{
	double sum = 0, dx = 1e-3;

	for (double x = dx / 2; x < 40; x += dx) {
		double shorter = load * (1 - (1 + x) * exp(-x));
		sum += exp(-x) * dx * load / ((1 - shorter) * (1 - shorter));
	}
	return 1 + sum;
}

static void test_shortest(void)
{
	struct sim_group_result g;

	fill(1, 1);
	CU_ASSERT_DOUBLE_EQUAL(run(&g), 1 / (1 - LOAD), 0.1);
	c.stage[0].discipline = WEIR_DISCIPLINE_SHORTEST;
	double mean = run(&g), want = shortest_response(LOAD);
	CU_ASSERT_DOUBLE_EQUAL(mean, want, 0.05 * want);
	/* with hints that say nothing, the order is as good as any other */
	c.stage[0].hint_error = 1e9;
	CU_ASSERT_DOUBLE_EQUAL(run(&g), 1 / (1 - LOAD), 0.2);
	/* an event that has waited for long comes first */
	c.stage[0].hint_error = 0;
	c.stage[0].queue_starve_ns = 1;
	CU_ASSERT_DOUBLE_EQUAL(run(&g), 1 / (1 - LOAD), 0.1);
	/* a pool has the same queue */
	c.stage[0].queue_starve_ns = 0;
	c.n_groups = c.stage[0].group = 0;
	struct sim_result *r = NULL;
	CU_ASSERT_EQUAL_FATAL(sim_run(&c, &r), 0);
	CU_ASSERT_DOUBLE_EQUAL(hdr_mean_ns(&r->class[0].response) / SERVICE_NS, mean, 0.01);
	sim_result_free(r);
}

/* Arrivals that `n` copies take in turn are E_n/M/1 for each: the response is 1 / (1 - sigma), where
 * sigma = (n rho / (n rho + 1 - sigma))^n. */
static double turns_response(int n, double load)
{
	double sigma = load;

	for (int i = 0; i < 200; i++)
		sigma = pow(n * load / (n * load + 1 - sigma), n);
	return 1 / (1 - sigma);
}

static void test_replicas(void)
{
	for (int n = 2; n <= 8; n *= 2) {
		struct sim_group_result g;

		fill(n, 1);
		c.group[0].replicas = n;
		double mean = run(&g), want = turns_response(n, LOAD);
		CU_ASSERT_DOUBLE_EQUAL(mean, want, 0.05 * want);
		for (int k = 0; k < n; k++)
			CU_ASSERT_DOUBLE_EQUAL(
			    (double)g.busy_ns[k] / (double)c.measured_ns, LOAD, 0.05);
	}
}

/* A core that reads its own requests is M/M/1, and so is each of several. */
static void test_source(void)
{
	struct sim_group_result g;

	fill(1, 1);
	c.source[0].group = 1;
	CU_ASSERT_DOUBLE_EQUAL(run(&g), 1 / (1 - LOAD), 0.15);
	fill(4, 1);
	c.source[0].group = 1;
	c.stage[0].local = SIM_LOCAL_ALWAYS;
	c.group[0].unbalanced = true;
	CU_ASSERT_DOUBLE_EQUAL(run(&g), 1 / (1 - LOAD), 0.15);
	CU_ASSERT(g.from_queue == 0 && g.from_cell > REQUESTS / 2);
}

/* What a core sends to a replicated stage is never dealt, whatever it takes. */
static void test_replicated(void)
{
	struct sim_group_result g;

	fill(4, 2);
	c.stage[1].local = SIM_LOCAL_AUTO;
	run(&g);
	CU_ASSERT(g.from_queue > g.from_cell + REQUESTS / 2);
	c.stage[1].local = SIM_LOCAL_KEPT;
	run(&g);
	CU_ASSERT(g.from_cell > REQUESTS / 2 && g.dealt == 0);
	CU_ASSERT(llabs((long long)(g.from_cell - g.from_queue)) < 20);
}

CUNIT_MAIN("other kinds of core groups", {"shortest", test_shortest}, {"replicas", test_replicas},
    {"a source", test_source}, {"a replicated stage", test_replicated})
