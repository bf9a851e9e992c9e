/* SPDX-License-Identifier: MIT */
/* What the simulator tells admission upstream (sim/routes.c) about the stages of core groups, and what
 * the law I14 says of it. */
#include <stdio.h>

#include "base/clock.h"
#include "sim/group_search.h"
#include "unit/cunit_main.h"

static struct sim_config c;

/* `n` stages on two cores with a service time of 100 us each, and one class. */
static void fill(int n, int n_routes)
{
	group_search_fill(7, &next_fifo, 2, 0.5, &c);
	c.n_stages = n;
	c.n_routes = c.n_sources = n_routes;
	for (int i = 0; i < n; i++) {
		c.stage[i].service = (struct sim_dist){.kind = SIM_CONST, .mean_ns = 100000};
		c.stage[i].batch_max = 1;
		c.stage[i].slo_ns = 20 * NS_PER_MS;
	}
	for (int i = 0; i < n_routes; i++)
		c.source[i] = (struct sim_source){
		    .name = "clients", .route = i, .arrivals = SIM_POISSON, .rate_per_s = 1000};
	c.warmup_ns = c.measured_ns = 3 * NS_PER_S;
	c.bin_ns = 100 * NS_PER_MS;
	c.laws = SIM_LAWS_SERVER | SIM_LAWS_GROUPS | SIM_LAW_MIDWAY;
}

static struct sim_result *run(void)
{
	struct sim_result *r = NULL;
	int rc = sim_run(&c, &r);

	if (rc != 0)
		printf("%s\n", r ? r->breach : "memory");
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return r;
}

/* Two routes of one class meet at a stage and part again. The server knows of an event only its class
 * and its stage, so events of the second route count as on their way to the end of the first. */
static void test_parting_routes(void)
{
	fill(5, 2);
	c.route[0] = (struct sim_route){.name = "first", .n = 3, .stage = {0, 2, 3}};
	c.route[1] = (struct sim_route){.name = "second", .n = 3, .stage = {1, 2, 4}};
	c.stage[3].admission = &admission_weir;
	/* nothing else goes to stage 3 when the run ends: its own route is hardly used */
	c.source[0].rate_per_s = 50;
	c.source[1].rate_per_s = 4000;
	struct sim_result *r = run();

	CU_ASSERT(r->law[__builtin_ctz(SIM_LAW_RETURNED)].checked > 50);
	CU_ASSERT(r->law[__builtin_ctz(SIM_LAW_RETURNED)].worst <= 1);
	sim_result_free(r);
}

/* Handlers of the first stage yield nine times an event. Each event goes on once, so the first stage
 * decides on admission to the second, and no work is lost. */
static void test_yields_go_on_once(void)
{
	fill(2, 1);
	c.group[0].limits.gate = NEXT_CUTOFF;
	c.group[0].limits.gate_ns = 100 * NS_PER_US;
	c.route[0] = (struct sim_route){.name = "all", .n = 2, .stage = {0, 1}};
	c.stage[0].service.mean_ns = NS_PER_MS;
	c.stage[1].service.mean_ns = 2 * NS_PER_MS;
	c.stage[1].admission = &admission_weir;
	c.source[0].rate_per_s = 1500;
	struct sim_result *r = run();

	CU_ASSERT(r->group[0].yielded > 1000);
	CU_ASSERT(sim_shed(&r->class[0]) > 1000);
	CU_ASSERT_EQUAL(r->class[0].refused_midway, 0);
	sim_result_free(r);
}

CUNIT_MAIN("routes of core groups in virtual time",
    {"routes that meet and part", test_parting_routes},
    {"an event that yields goes on once", test_yields_go_on_once})
