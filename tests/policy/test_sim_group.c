/* SPDX-License-Identifier: MIT */
/* The simulator of core groups: its books, an exact result of queueing theory, and what the
 * policies make of Gordon's search engine. */
#include "sim/group_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "unit/cunit_main.h"

static struct sim_result *run(const struct sim_config *c)
{
	struct sim_result *r = NULL;

	int rc = sim_run(c, &r);
	if (rc != 0)
		printf("%s\n", r ? r->breach : "?");
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return r;
}

/* Nothing is lost, each batch has one reason, no core works more than all the time. */
static void check_books(const struct sim_config *c, const struct sim_result *r)
{
	const struct sim_group_result *g = &r->group[0];
	uint64_t batches = 0, visits = 0, reasons = 0, events = 0;

	for (int i = 0; i < c->n_stages; i++) {
		batches += r->stage[i].batches;
		visits += r->stage[i].visits;
		events += r->stage[i].batched;
		CU_ASSERT(r->stage[i].batches <= r->stage[i].batched);
	}
	for (int i = NEXT_URGENT; i <= NEXT_POLICY; i++)
		reasons += g->by_why[i];
	CU_ASSERT_EQUAL(batches, reasons);
	CU_ASSERT(visits <= batches);
	CU_ASSERT(visits >= g->by_why[NEXT_POLICY] + g->by_why[NEXT_STARVED]);
	CU_ASSERT_EQUAL(g->from_queue + g->from_cell, events);
	CU_ASSERT(g->from_queue > 0);
	for (int i = 0; i < c->group[0].cores; i++)
		CU_ASSERT(g->busy_ns[i] > 0 && g->busy_ns[i] <= c->measured_ns);
	CU_ASSERT_EQUAL(r->class[0].in_time, r->class[0].offered);
}

static void test_books(void)
{
	for (int p = 0; next_policy_at(p); p++)
		for (enum next_gate gate = NEXT_ALL; gate <= NEXT_CUTOFF; gate++) {
			struct sim_config c;

			group_search_fill(7, next_policy_at(p), 1 + 3 * p, 0.8, &c);
			c.measured_ns /= 50;
			c.warmup_ns /= 10;
			c.laws |= SIM_LAWS_GROUPS;
			c.group[0].limits.gate = gate;
			c.group[0].limits.gate_events = 4;
			c.group[0].limits.gate_ns = 1000000;
			c.group[0].limits.starve_ns = gate % 2 ? 50000000 : 0;
			for (int i = 0; i < c.n_stages; i++)
				c.stage[i].local = i % 2 == 0 ? SIM_LOCAL_ALWAYS : SIM_LOCAL_NEVER;
			struct sim_result *r = run(&c), *again = run(&c);

			check_books(&c, r);
			CU_ASSERT_EQUAL(
			    r->class[0].response.sum_ns, again->class[0].response.sum_ns);
			CU_ASSERT_EQUAL(r->ended_ns, again->ended_ns);
			CU_ASSERT(gate != NEXT_CUTOFF || r->group[0].yielded > 0);
			sim_result_free(r);
			sim_result_free(again);
		}
}

/* Mean time in the system of M/M/k, in multiples of a service (Erlang's C formula). */
static double mmk_response(int k, double load)
{
	double a = k * load, blocked = 1;

	for (int i = 1; i <= k; i++) /* Erlang's B by recursion */
		blocked = a * blocked / (i + a * blocked);
	return 1 + blocked / (1 - load * (1 - blocked)) / (k * (1 - load));
}

/* One stage in one queue is M/M/k, with any policy, if scheduling costs nothing. */
static void test_mmk(void)
{
	static const int cores[] = {1, 2, 8, 64};

	for (int i = 0; i < 4; i++) {
		struct sim_config c;
		group_search_fill(3, next_policy_at(i), cores[i], 0.8, &c);
		c.group[0].cost = (struct sim_group_costs){0};
		c.n_stages = c.n_routes = c.n_sources = 1;
		c.stage[0].service = (struct sim_dist){SIM_EXP, 1000000, 0, 0, 0};
		c.stage[0].batch_max = 1;
		c.stage[0].local = SIM_LOCAL_NEVER;
		c.route[0].n = 1;
		c.source[0].rate_per_s = 0.8 * cores[i] * 1000;
		c.measured_ns = (int64_t)(100000 / c.source[0].rate_per_s * 1e9);
		struct sim_result *r = run(&c);
		double mean = hdr_mean_ns(&r->class[0].response) / 1000000;

		CU_ASSERT_DOUBLE_EQUAL(mean, mmk_response(cores[i], 0.8), 0.05 * mean);
		sim_result_free(r);
	}
}

static double search_ms(const struct next_policy *policy, int cores)
{
	double sum = 0;

	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct sim_config c;

		group_search_fill(seed, policy, cores, 0.85, &c);
		c.measured_ns /= 10;
		c.warmup_ns /= 5;
		CU_ASSERT_DOUBLE_EQUAL(group_load(&c, 0), 0.85, 1e-9);
		struct sim_result *r = run(&c);

		sum += hdr_mean_ns(&r->class[0].response) / 1000000 / 2;
		sim_result_free(r);
	}
	return sum;
}

/* The order of visits changes the mean response with 8 cores, but by less than half, and hardly
 * with 64. WEIR_NEXT_TABLE prints the figures. */
static void test_search_engine(void)
{
	double color8 = search_ms(&next_color, 8), color64 = search_ms(&next_color, 64);

	for (int p = 0; next_policy_at(p); p++) {
		double ms8 = search_ms(next_policy_at(p), 8),
		       ms64 = search_ms(next_policy_at(p), 64);

		CU_ASSERT(ms8 > color8 / 1.5 && ms8 < color8 * 1.5);
		CU_ASSERT(ms64 > color64 / 1.2 && ms64 < color64 * 1.2);
		if (getenv("WEIR_NEXT_TABLE"))
			printf("%-9s 8 cores %7.2f ms %+5.1f %%, 64 cores %6.2f ms %+5.1f %%\n",
			    next_policy_at(p)->name, ms8, 100 * (ms8 / color8 - 1), ms64,
			    100 * (ms64 / color64 - 1));
	}
}

CUNIT_MAIN("core groups in virtual time", {"books", test_books}, {"M/M/k", test_mmk},
    {"search engine", test_search_engine})
