/* SPDX-License-Identifier: MIT */
/*
 * `weir`, admission and pools, for 10^8 steps of the simulator with every law checked at each step:
 * all workloads, loads from 0.3 to 10, a new seed each time, with and without faults, services
 * twenty times as short, deadlines unknown to the server, pools with any initial size. A broken law
 * fails the test and prints the seed and the last steps.
 *
 * The simulator counts the steps (sim_result.events: each send, each completion of a thread, each
 * tick, retry, timeout and fault), and the number is asserted. It is SOAK_STEPS, set by the build
 * (CMakeLists.txt here: 10^8 in a release build, fewer where a step is expensive), or the
 * environment's WEIR_POLICY_STEPS.
 */
#include "runs.h"

#include <stdlib.h>

#define SECONDS 10
#define LAWS    (SIM_LAWS_SERVER | SIM_LAWS_POLICY | SIM_LAWS_POOLS)

static struct sim_config c;
static struct sim_law_result total[SIM_LAWS_COUNT];
static uint64_t steps, runs;

static uint64_t wanted_steps(void)
{
	const char *env = getenv("WEIR_POLICY_STEPS");

	return env ? strtoull(env, NULL, 10) : SOAK_STEPS;
}

static void run(void)
{
	c.laws = LAWS;
	c.probe_all = true;
	c.trace = stderr;
	struct sim_result *r = runs_do(&c);
	runs++;
	if (!r)
		return;
	steps += r->events;
	for (int i = 0; i < SIM_LAWS_COUNT; i++) {
		total[i].checked += r->law[i].checked;
		total[i].broken += r->law[i].broken;
		total[i].worst = fmax(total[i].worst, r->law[i].worst);
	}
	sim_result_free(r);
}

/* ---- the runs ---- */

enum twist { PLAIN, DEATHS, SLOWER, LOST, UNTOLD, SHORT, TWISTS };

static void add_fault(struct sim_fault f)
{
	f.from_ns = 5 * NS_PER_S;
	c.fault[c.n_faults++] = f;
}

static void twist(enum twist t)
{
	switch (t) {
	case DEATHS:
		add_fault((struct sim_fault){
		    .kind = SIM_CRASH, .to_ns = 8 * NS_PER_S, .period_ns = 50 * NS_PER_MS});
		break;
	case SLOWER:
		add_fault((struct sim_fault){.kind = SIM_SLOW, .to_ns = 8 * NS_PER_S, .factor = 5});
		break;
	case LOST:
		add_fault((struct sim_fault){.kind = SIM_LOST_TICKS, .to_ns = 5500 * NS_PER_MS});
		break;
	case UNTOLD:
		for (int i = 0; i < c.n_sources; i++)
			c.source[i].hides_deadline = true;
		break;
	case SHORT:
		for (int i = 0; i < c.n_stages; i++)
			c.stage[i].service.mean_ns /= 20;
		for (int i = 0; i < c.n_sources; i++)
			c.source[i].rate_per_s *= 20;
		c.measured_ns /= 5;
		break;
	case PLAIN:
	case TWISTS:
		break;
	}
}

static void door(const char *workload, double load, enum twist t, uint64_t seed)
{
	sim_workload_fill(
	    sim_workload_find(workload), load, &admission_weir, NULL, seed, SECONDS * NS_PER_S, &c);
	twist(t);
	run();
}

/* A pool that blocks, and one that computes on four cores, both with `start` threads initially. */
static void pools(double load, int start, uint64_t seed)
{
	sim_workload_fill(
	    sim_workload_find("W5"), load, &admission_weir, &resize_weir, seed, 60 * NS_PER_S, &c);
	c.stage[0].threads_start = start;
	run();
	sim_workload_fill(sim_workload_find("W2"), 2 * load, &admission_weir, &resize_weir, seed,
	    60 * NS_PER_S, &c);
	c.stage[0].threads_min = 1;
	c.stage[0].threads_max = 64;
	c.stage[0].threads_start = start < 64 ? start : 64;
	run();
}

/* One run of each kind, so that even a short test checks every law. */
static void some_of_each(void)
{
	door("W2", 10, SHORT, 1);
	door("W6", 10, DEATHS, 1);
	door("W2", 0.7, PLAIN, 1);
	door("W7", 10, UNTOLD, 1);
	pools(0.5, 2, 1);
}

static void one_round(uint64_t seed, uint64_t goal)
{
	static const double loads[] = {0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 5, 10};
	static const int starts[] = {2, 5, 20, 50, 100, 200};

	for (size_t l = 0; l < sizeof(loads) / sizeof(loads[0]); l++)
		for (int t = PLAIN; t < TWISTS; t++)
			for (int w = 0; sim_workload_at(w) && steps < goal; w++)
				if (!sim_workload_at(w)->pools)
					door(sim_workload_at(w)->name, loads[l], (enum twist)t,
					    seed * 100 + l);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]) && steps < goal; i++)
		for (int load = 2; load <= 8 && steps < goal; load += 3)
			pools(load * 0.1, starts[i], seed * 100 + i);
}

/* Checks I1 to I15; test_group_laws.c checks the laws of core groups. */
static void test_every_law(void)
{
	uint64_t goal = wanted_steps();
	unsigned failed = CU_get_number_of_failures();

	some_of_each();
	for (uint64_t seed = 1; steps < goal && CU_get_number_of_failures() == failed; seed++)
		one_round(seed, goal);
	printf(
	    "\n    %llu steps in %llu runs", (unsigned long long)steps, (unsigned long long)runs);
	for (int i = 0; i < SIM_LAWS_COUNT; i++) {
		if (LAWS >> i & 1)
			printf("\n    %-18s %10llu times, at most %.2f of its limit",
			    sim_law_name(i), (unsigned long long)total[i].checked, total[i].worst);
		CU_ASSERT_EQUAL(total[i].checked > 0, (LAWS >> i & 1) != 0);
		CU_ASSERT_EQUAL(total[i].broken, 0);
	}
	CU_ASSERT(steps >= goal);
}

CUNIT_MAIN("sim soak", {"every law at every step", test_every_law})
