/* SPDX-License-Identifier: MIT */
/* Core groups with a range of cores in virtual time: the resize policies of pools choose their number. */
#include <stdio.h>

#include "base/clock.h"
#include "sim/group_search.h"
#include "unit/cunit_main.h"

#define MOST 8

static struct sim_config c;

/* Two stages of 500 us each, exponential, that keep `busy` cores busy. */
static void fill(double busy, const char *resize)
{
	group_search_fill(3, &next_fifo, MOST, 0.5, &c);
	c.group[0].cores_min = 1;
	c.group[0].resize = resize_find(resize);
	c.n_stages = 2;
	c.n_routes = c.n_sources = 1;
	c.route[0] = (struct sim_route){.n = 2, .stage = {0, 1}};
	for (int i = 0; i < 2; i++) {
		c.stage[i].service = (struct sim_dist){SIM_EXP, 500 * NS_PER_US, 0, 0, 0};
		c.stage[i].batch_max = 4;
		c.stage[i].slo_ns = 100 * NS_PER_MS;
		c.stage[i].threads_min = c.stage[i].threads_start = 1;
	}
	c.source[0].rate_per_s = busy * 1000;
	c.warmup_ns = 20 * NS_PER_S;
	c.measured_ns = 40 * NS_PER_S;
	c.laws = SIM_LAWS_SERVER | SIM_LAWS_GROUPS | SIM_LAWS_POOLS;
}

static struct sim_group_result run(void)
{
	struct sim_result *r = NULL;
	int rc = sim_run(&c, &r);

	if (rc != 0)
		printf("%s\n", r ? r->breach : "memory");
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	struct sim_group_result g = r->group[0];
	sim_result_free(r);
	return g;
}

/* The group soon has the cores that the load needs, but not many more. */
static void test_finds(void)
{
	static const double busy[] = {0.4, 1.5, 3.2, 5};

	for (int i = 0; i < 4; i++) {
		fill(busy[i], "weir");
		struct sim_group_result g = run();
		double cores = (double)g.cores_ns / (double)c.measured_ns;
		if (cores < busy[i] || cores > 2 * busy[i] + 1)
			printf("%.1f busy: %.2f cores\n", busy[i], cores);
		CU_ASSERT(cores > busy[i] && cores <= 2 * busy[i] + 1);
		CU_ASSERT(g.busy_ns[0] > 0 && g.busy_ns[MOST - 1] == 0);
	}
}

/* The load ends, and the group gets small again. */
static void test_shrinks(void)
{
	fill(5, "weir");
	c.source[0].phase[0] = (struct sim_phase){.at_ns = 0, .factor = 1};
	c.source[0].phase[1] = (struct sim_phase){.at_ns = 30 * NS_PER_S, .factor = 0.05};
	c.measured_ns = 100 * NS_PER_S;
	struct sim_group_result g = run();

	CU_ASSERT(g.cores_end <= 2);
	CU_ASSERT(g.resized >= 4);
}

static void test_static(void)
{
	fill(0.5, "static");
	struct sim_group_result g = run();

	CU_ASSERT_EQUAL(g.cores_end, 1);
	CU_ASSERT_EQUAL(g.cores_ns, c.measured_ns);
	c.group[0].cores_min = MOST + 1;
	struct sim_result *r = NULL;
	CU_ASSERT_EQUAL(sim_run(&c, &r), WEIR_EINVAL);
	sim_result_free(r);
}

CUNIT_MAIN("core groups with a range of cores", {"finds the number", test_finds},
    {"shrinks again", test_shrinks}, {"static", test_static})
