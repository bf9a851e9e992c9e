/* SPDX-License-Identifier: MIT */
/*
 * Every admission policy under the workloads of sim/workload.c (W1 to W12) at several loads,
 * briefly and with one seed.
 *
 * Laws (I1 to I15, docs/overload-derivation.md) are checked at every step: those of the server for
 * each policy, and those of policies for `weir`. For `weir` the targets of bench/OVERLOAD.md are
 * checked as well. Each figure that misses its target is printed, and fails the test if
 * WEIR_POLICY_STRICT is set. A short run with one seed is only a hint; bench/overload_sim produces
 * the figures that count.
 */
#include "runs.h"

#include <stdlib.h>

#define SLO_NS (100 * NS_PER_MS)

static const double grid[] = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10};
static const double short_grid[] = {0.5, 0.9, 1.2, 3, 10};

/* ---- targets ---- */

static void target(
    const char *what, const char *workload, double load, double is, double wanted, bool at_least)
{
	if (at_least ? is >= wanted : is <= wanted)
		return;
	printf("\n    target missed: %s in %s at %gx: %.4g, wanted %s %.4g", what, workload, load,
	    is, at_least ? ">=" : "<=", wanted);
	if (getenv("WEIR_POLICY_STRICT"))
		CU_FAIL("a target was missed");
}

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

/* Excludes requests whose services alone took longer than their deadline. */
static double wasted(const struct sim_result *r)
{
	return share((uint64_t)(r->wasted_ns - r->hopeless_ns), (uint64_t)r->service_ns);
}

static void targets_of_load(const struct sim_workload *w, double load, const struct sim_config *c,
    const struct sim_result *r)
{
	int64_t from_ns = c->warmup_ns, to_ns = c->warmup_ns + c->measured_ns;
	uint64_t offered = 0, shed = 0;

	for (int k = 0; k < c->n_classes; k++) {
		offered += r->class[k].offered;
		shed += sim_shed(&r->class[k]);
	}
	if (load >= 2)
		target("goodput / capacity", w->name, load,
		    sim_goodput_per_s(c, r, from_ns, to_ns) / sim_capacity_per_s(c), 0.95, true);
	/* I6: a class with a guarantee of 2 % gets 0.9 of that, however high the demand of the
	 * classes above. */
	for (int k = 1; load >= 2 && k < c->n_classes; k++)
		target("goodput of a guaranteed class / capacity", w->name, load,
		    (double)r->class[k].in_time * 1e9 / (double)c->measured_ns /
			sim_capacity_per_s(c),
		    0.9 * 0.02, true);
	if (load <= 0.7)
		target("refused", w->name, load, share(shed, offered), 0.001, false);
	target("p99 / objective", w->name, load,
	    (double)sim_response_ns(c, r, 0.99) / (double)SLO_NS, 1, false);
	target("wasted work", w->name, load, wasted(r), 0.01, false);
}

/* ---- runs ---- */

static bool is_weir(const struct admission_policy *p)
{
	return strcmp(p->name, "weir") == 0;
}

static struct sim_result *run(const char *workload, double load, const struct admission_policy *p,
    int64_t measured_ns, struct sim_config *c)
{
	sim_workload_fill(sim_workload_find(workload), load, p, NULL, 1, measured_ns, c);
	c->laws = SIM_LAWS_SERVER | (is_weir(p) ? SIM_LAWS_POLICY : 0);
	c->trace = stderr;
	return runs_do(c);
}

static void under_loads(const struct admission_policy *p, const double *load, size_t n)
{
	static const char *const steady[] = {"W1", "W2", "W3", "W4"};
	static struct sim_config c;

	for (size_t w = 0; w < sizeof(steady) / sizeof(steady[0]); w++) {
		for (size_t i = 0; i < n; i++) {
			struct sim_result *r = run(steady[w], load[i], p, 6 * NS_PER_S, &c);
			if (r && is_weir(p))
				targets_of_load(sim_workload_find(steady[w]), load[i], &c, r);
			sim_result_free(r);
		}
	}
}

static void test_steady(void)
{
	for (int i = 0; admission_at(i); i++) {
		if (is_weir(admission_at(i)))
			under_loads(admission_at(i), grid, sizeof(grid) / sizeof(grid[0]));
		else
			under_loads(admission_at(i), short_grid,
			    sizeof(short_grid) / sizeof(short_grid[0]));
	}
}

/* The top class during the flood: its demand is 0.4 of the capacity. */
static void test_flood(void)
{
	static struct sim_config c;

	for (int p = 0; admission_at(p); p++) {
		for (size_t i = 0; i < sizeof(short_grid) / sizeof(short_grid[0]); i++) {
			double load = short_grid[i];
			struct sim_result *r = run("W10", load, admission_at(p), 10 * NS_PER_S, &c);
			if (r && is_weir(admission_at(p)))
				target("success of the top class", "W10", load,
				    share(r->class[0].in_time, r->class[0].offered), 0.999, true);
			sim_result_free(r);
		}
	}
}

/* Seconds from `from_ns` until at most a twentieth of the requests sent in a window are lost. */
static double settled_s(const struct sim_config *c, const struct sim_result *r, int64_t from_ns)
{
	const int window = 5; /* 100 ms */

	for (int i = (int)(from_ns / c->bin_ns); i + window <= r->n_bins; i++) {
		uint64_t offered = 0, lost = 0;
		for (int b = i; b < i + window; b++) {
			offered += r->bin[b].offered;
			lost += r->bin[b].refused + r->bin[b].late;
		}
		if (lost * 20 <= offered)
			return (double)(i * c->bin_ns - from_ns) * 1e-9;
	}
	return 1e9;
}

/* W7: the spike lasts from 5 s to 15 s. The policy has 60 ms to adapt to it. */
static void targets_of_spike(double load, const struct sim_config *c, const struct sim_result *r)
{
	target("recovery, s", "W7", load, settled_s(c, r, 15 * NS_PER_S), 0.2, false);
	target("goodput of its first second / capacity", "W7", load,
	    sim_goodput_per_s(c, r, 5060 * NS_PER_MS, 6060 * NS_PER_MS) / sim_capacity_per_s(c),
	    0.95, true);
}

/* W6, W8: the route that does not pass the narrow or slow stage. */
static void test_unaffected(void)
{
	static struct sim_config c;

	for (int p = 0; admission_at(p); p++) {
		bool weir = is_weir(admission_at(p));
		struct sim_result *narrow = run("W6", 3, admission_at(p), 20 * NS_PER_S, &c);
		if (narrow && weir)
			target("success of the wide route", "W6", 3,
			    share(narrow->route_in_time[1], narrow->route_offered[1]), 0.97, true);
		if (narrow && weir)
			target("wasted work", "W6", 3, wasted(narrow), 0.01, false);
		struct sim_result *slow = run("W8", 0.8, admission_at(p), 20 * NS_PER_S, &c);
		if (slow && weir)
			target("success of the plain route", "W8", 0.8,
			    share(slow->route_in_time[0], slow->route_offered[0]), 0.97, true);
		sim_result_free(narrow);
		sim_result_free(slow);
	}
}

/* W8: services with a mean of half the objective. Any wait makes some of them late, so waits must
 * be short. When waits were as long as for shorter services, more was wasted (0.10 and 0.12) and
 * less was done. */
static void test_long_services(void)
{
	static const double load[] = {0.3, 0.8}, done_per_s[] = {130, 205};
	static struct sim_config c;

	for (int i = 0; i < 2; i++) {
		struct sim_result *r = run("W8", load[i], &admission_weir, 13 * NS_PER_S, &c);
		if (!r)
			continue;
		CU_ASSERT(wasted(r) <= 0.06);
		CU_ASSERT((double)r->route_in_time[1] / 13 >= done_per_s[i]);
		target("wasted work", "W8", load[i], wasted(r), 0.01, false);
		sim_result_free(r);
	}
}

/* W7, W9: behaviour after the spike; W9 with retries. */
static void test_spikes(void)
{
	static const double spikes[] = {1.4, 2, 10};
	static struct sim_config c;

	for (int p = 0; admission_at(p); p++) {
		for (size_t i = 0; i < sizeof(spikes) / sizeof(spikes[0]); i++) {
			struct sim_result *plain =
			    run("W7", spikes[i], admission_at(p), 20 * NS_PER_S, &c);
			if (plain && is_weir(admission_at(p)))
				targets_of_spike(spikes[i], &c, plain);
			struct sim_result *storm =
			    run("W9", spikes[i], admission_at(p), 25 * NS_PER_S, &c);
			if (storm && is_weir(admission_at(p))) {
				double before =
				    sim_goodput_per_s(&c, storm, 2 * NS_PER_S, 5 * NS_PER_S);
				double after =
				    sim_goodput_per_s(&c, storm, 20 * NS_PER_S, 25 * NS_PER_S);
				target("recovery, s", "W9", spikes[i],
				    settled_s(&c, storm, 15 * NS_PER_S), 2, false);
				target("goodput / before", "W9", spikes[i], after / before, 0.95,
				    true);
			}
			sim_result_free(plain);
			sim_result_free(storm);
		}
	}
}

/* I13: with ticks lost for half a second at the start of a spike, the queue stays bounded (the law
 * at every step), and so do the waits of the top class. */
static void test_lost_ticks(void)
{
	static struct sim_config c;
	const struct admission_policy *p = admission_find("weir");

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	sim_workload_fill(sim_workload_find("W7"), 10, p, NULL, 1, 10 * NS_PER_S, &c);
	c.fault[c.n_faults++] = (struct sim_fault){
	    .kind = SIM_LOST_TICKS, .from_ns = 5 * NS_PER_S, .to_ns = 5500 * NS_PER_MS};
	/* Known deadlines would hide a failure of the caps. */
	for (int i = 0; i < c.n_sources; i++)
		c.source[i].hides_deadline = true;
	c.laws = SIM_LAWS_SERVER | SIM_LAWS_POLICY;
	c.trace = stderr;
	struct sim_result *r = runs_do(&c);
	if (r)
		CU_ASSERT(hdr_quantile_ns(&r->class[0].wait, 1) <= SLO_NS);
	sim_result_free(r);
}

/* W11: equal users get equal shares, whatever a greedy one does. */
static void test_users(void)
{
	static struct sim_config c;

	for (int p = 0; admission_at(p); p++) {
		struct sim_result *r = run("W11", 2, admission_at(p), 20 * NS_PER_S, &c);
		if (r && is_weir(admission_at(p)))
			target("Jain's index of equal users", "W11", 2, sim_jain(r, 0, 100), 0.95,
			    true);
		sim_result_free(r);
	}
}

CUNIT_MAIN("policies under load", {"steady loads", test_steady}, {"a flood", test_flood},
    {"spikes", test_spikes}, {"lost ticks", test_lost_ticks}, {"users", test_users},
    {"unaffected routes", test_unaffected}, {"long services", test_long_services})
