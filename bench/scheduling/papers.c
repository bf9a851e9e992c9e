/* SPDX-License-Identifier: MIT */
/* Gates with a heavy tail (Harizopoulos), queues per core and clients (libasync-smp), cohorts
 * (Larus). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tables.h"

/* A line of `n` stages of a group, each with the service `d`, and Poisson arrivals at `load`. */
static void fill_line(struct sim_config *c, const struct next_policy *policy, int cores, int n,
    struct sim_dist d, double load)
{
	group_search_fill(1, policy, cores, 0.5, c);
	c->n_stages = n;
	c->n_routes = c->n_sources = 1;
	c->route[0].n = n;
	for (int i = 0; i < n; i++) {
		c->route[0].stage[i] = i;
		c->stage[i] = c->stage[0];
		c->stage[i].place = i;
		c->stage[i].service = d;
	}
	c->source[0].rate_per_s = load / (group_load(c, 0) / c->source[0].rate_per_s);
	c->bin_ns = 10 * NS_PER_MS;
	c->measured_ns = (int64_t)(15000 / c->source[0].rate_per_s * 1e9) + c->bin_ns;
	c->warmup_ns = c->measured_ns / 4;
}

/* ---- gates ---- */

void table_cutoff(int seeds)
{
	static const struct {
		const char *name;
		enum next_gate gate;
		int64_t ns;
	} gates[] = {{"all", NEXT_ALL, 0}, {"arrived", NEXT_ARRIVED, 0},
	    {"events: 16", NEXT_EVENTS, 0}, {"time: 1ms", NEXT_TIME, NS_PER_MS},
	    {"cutoff: 0.3ms", NEXT_CUTOFF, 300 * NS_PER_US},
	    {"cutoff: 1ms", NEXT_CUTOFF, NS_PER_MS}, {"cutoff: 5ms", NEXT_CUTOFF, 5 * NS_PER_MS}};
	static const int cores[] = {1, 4, 64};
	/* 100 us on average, 1 in 100 takes 51 times as long as the others */
	struct sim_dist tail = {SIM_BIMODAL, 100000, 0.01, 51, 0};

	printf("| cores | gate | mean, ms | of all | p50, ms | p99, ms "
	       "|\n|---|---|---|---|---|---|\n");
	for (int k = 0; k < 3; k++) {
		double first = 0;
		for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
			struct sim_config c;
			fill_line(&c, &next_wavefront, cores[k], 3, tail, 0.8);
			c.group[0].limits.gate = gates[i].gate;
			c.group[0].limits.gate_ns = gates[i].ns;
			c.group[0].limits.gate_events = 16;
			struct outcome o = run_seeds(&c, seeds);
			first = first > 0 ? first : o.mean_ms;
			printf("| %d | %s | %.2f | %.2f | %.2f | %.1f |\n", cores[k], gates[i].name,
			    o.mean_ms, o.mean_ms / first, o.p50_ms, o.p99_ms);
		}
	}
}

/* ---- queues per core ---- */

/* Tasks of 16 clients, a hop each; `work_ns` is the computation of a task. */
static double tasks_per_s(struct sim_config *c, int64_t work_ns, int seeds)
{
	struct sim_group_costs cost = c->group[0].cost;
	bool unbalanced = c->group[0].unbalanced;
	enum sim_local local = c->stage[0].local;

	fill_line(c, &next_fifo, 4, 31, (struct sim_dist){.mean_ns = work_ns}, 0.5);
	c->group[0].cost = cost;
	c->group[0].unbalanced = unbalanced;
	for (int i = 0; i < 31; i++)
		c->stage[i].local = local;
	close_loop(c, 16);
	c->measured_ns = c->bin_ns = 20 * NS_PER_MS;
	c->warmup_ns = c->measured_ns / 2;
	return run_seeds(c, seeds).per_s * 31;
}

void table_queues(int seeds)
{
	/* A hop through the queue of a group that two cores share, and one through a cell, each with
	 * 0.4 us of work (micro_cells, 8 under way): the difference is the queue. */
	const int64_t contended_ns = 1000;
	/* malloc and free of a small event by different threads; a guess, libasync-smp's gain */
	const int64_t alloc_ns = 60;
	static const int64_t works[] = {400, 3000, 10000};

	printf(
	    "| work of a task | one queue | + cells | + no malloc | + dealing | ratios to the one "
	    "before |\n|---|---|---|---|---|---|\n");
	for (int i = 0; i < 3; i++) {
		struct sim_config c;
		double v[4];
		for (int k = 0; k < 4; k++) {
			memset(&c, 0, sizeof(c));
			c.group[0].cost = group_costs();
			c.group[0].cost.event_ns += k < 2 ? alloc_ns : 0;
			c.group[0].cost.queue_ns = k == 0 ? contended_ns : 20;
			c.group[0].unbalanced = k < 3;
			c.stage[0].local = k == 0 ? SIM_LOCAL_NEVER : SIM_LOCAL_ALWAYS;
			v[k] = tasks_per_s(&c, works[i], seeds);
		}
		printf("| %.1f us | %.0f | %.0f | %.0f | %.0f | %.2f, %.2f, %.2f |\n",
		    (double)works[i] / 1e3, v[0], v[1], v[2], v[3], v[1] / v[0], v[2] / v[1],
		    v[3] / v[2]);
	}
}

/* ---- clients ---- */

/* A server of cached pages: read, parse, two caches that only one core may use at a time, write. */
static void fill_web(struct sim_config *c, int cores)
{
	static const int64_t ns[] = {12000, 6000, 5000, 5000, 22000};

	fill_line(c, &next_wavefront, cores, 5, (struct sim_dist){.kind = SIM_EXP}, 0.5);
	for (int i = 0; i < 5; i++) {
		c->stage[i].service = (struct sim_dist){.kind = SIM_EXP, .mean_ns = ns[i]};
		c->stage[i].exclusive = i == 2 || i == 3;
	}
	c->source[0].rate_per_s = 1;
	c->bin_ns = 10 * NS_PER_MS;
	c->measured_ns = 400 * NS_PER_MS;
	c->warmup_ns = 200 * NS_PER_MS;
}

void table_clients(int seeds)
{
	static const int clients[] = {50, 100, 200, 400, 800, 1600}, cores[] = {1, 2, 3, 4, 64};
	struct sim_config c;
	double one = 0;

	printf("| cores |");
	for (int k = 0; k < 6; k++)
		printf(" %d clients |", clients[k]);
	printf(" speed-up at 800 |\n|---|---|---|---|---|---|---|---|\n");
	for (int i = 0; i < 5; i++) {
		double at_800 = 0;
		printf("| %d |", cores[i]);
		for (int k = 0; k < 6; k++) {
			fill_web(&c, cores[i]);
			close_loop(&c, clients[k]);
			double per_s = run_seeds(&c, seeds).per_s;
			at_800 = clients[k] == 800 ? per_s : at_800;
			printf(" %.0f |", per_s);
		}
		one = one > 0 ? one : at_800;
		printf(" %.2f |\n", at_800 / one);
		fflush(stdout);
	}
}

/* ---- cohorts ---- */

/* The first event of a visit finds caches that hold another stage, the others find its own. Larus,
 * figure 2: a call alone takes 109,000 cycles, one of a cohort of 8 takes 0.32 of that, one of 64
 * 0.18: 93,000 once and 16,000 for each, so 0.85 of an event alone are misses. `cold` is that share
 * for a whole server, where most of a stage's time has no cold misses. */
static void make_cold(struct sim_config *c, double cold, bool threads, int64_t alone_ns)
{
	for (int i = 0; i < c->n_stages; i++) {
		c->stage[i].service.mean_ns = (int64_t)((1 - cold) * (double)alone_ns);
		c->stage[i].batch_max = threads ? 1 : 64;
		/* a thread pays for each event, even after one of the same stage */
		c->stage[i].batch_fixed_ns = threads ? (int64_t)(cold * (double)alone_ns) : 0;
	}
	c->group[0].cost.switch_ns = threads ? 0 : (int64_t)(cold * (double)alone_ns);
}

void table_cohorts(int seeds)
{
	static const double colds[] = {0.05, 0.15, 0.3, 0.85};
	static const int clients[] = {1, 4, 16, 64, 256, 1024};
	struct sim_dist d = {.kind = SIM_EXP, .mean_ns = 100000};
	struct sim_config c;

	printf(
	    "| cold share | clients | rate, staged / threads | mean response | events a visit |\n"
	    "|---|---|---|---|---|\n");
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 6; k++) {
			fill_line(&c, &next_wavefront, 4, 6, d, 0.5);
			make_cold(&c, colds[i], true, 100000);
			close_loop(&c, clients[k]);
			struct outcome threads = run_seeds(&c, seeds);
			fill_line(&c, &next_wavefront, 4, 6, d, 0.5);
			make_cold(&c, colds[i], false, 100000);
			close_loop(&c, clients[k]);
			struct outcome staged = run_seeds(&c, seeds);
			printf("| %.2f | %d | %.2f | %.2f | %.1f |\n", colds[i], clients[k],
			    staged.per_s / threads.per_s, staged.mean_ms / threads.mean_ms,
			    staged.per_visit);
			fflush(stdout);
		}
}
