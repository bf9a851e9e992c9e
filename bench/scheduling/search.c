/* SPDX-License-Identifier: MIT */
/*
 * Gordon's search engine: schedules (tables 4.9 to 4.11) and load balancing (4.14 to 4.16).
 *
 * A closed loop of 4 clients per core gives the rate, open arrivals at a load of 0.85 the response
 * time. With `polls`, a core that looks for the next stage pays 6 us for each stage without events
 * that it passes over, which is how Gordon's policies find their next stage (3.1); in weir a core
 * knows which stages have events. The three clients' routes that are rare have at least one client.
 */
#include <stdio.h>
#include <string.h>

#include "tables.h"

#define CLIENTS 4    /* per core */
#define MANY    128  /* per core: about as many as Gordon's, by Little's law */
#define POLL_NS 6000 /* a guess of the design, for a look at a queue of the time */

static double rate(const struct sim_config *open, int seeds)
{
	struct sim_config c = *open;

	close_loop(&c, CLIENTS * c.cores);
	return run_seeds(&c, seeds).per_s;
}

static void print_row(const char *name, struct sim_config *c, int seeds, const double *first)
{
	double per_s = rate(c, seeds);
	struct outcome open = run_seeds(c, seeds);

	printf("| %d | %s | %.0f | %.2f | %.1f | %.2f | %.2f |\n", c->cores, name, per_s,
	    first ? per_s / first[0] : 1, open.mean_ms, first ? open.mean_ms / first[1] : 1,
	    open.per_visit);
	fflush(stdout);
}

/* Pools of `threads` threads for each stage, which share the cores evenly. If that is 1, the
 * combiner has a thread per core. `cost_ns` is what a switch of threads costs each event. */
static void make_pools(struct sim_config *c, int threads, int64_t cost_ns)
{
	c->n_groups = 0;
	for (int i = 0; i < c->n_stages; i++) {
		bool combiner = strcmp(c->stage[i].name, "combiner") == 0;
		int n = combiner && threads == 1 ? c->cores : threads;
		c->stage[i].group = 0;
		c->stage[i].threads_min = c->stage[i].threads_max = n;
		c->stage[i].threads_start = n;
		c->stage[i].batch_fixed_ns = cost_ns;
	}
}

static void print_cores(int cores, int seeds)
{
	static const char *const order[] = {"color", "srpt", "mg1", "wavefront", "dbr", "fifo"};
	struct sim_config c;
	double first[2];

	group_search_fill(1, &next_color, cores, 0.85, &c);
	first[0] = rate(&c, seeds);
	first[1] = run_seeds(&c, seeds).mean_ms;
	for (size_t i = 0; i < 6; i++) {
		char name[64];
		group_search_fill(1, next_policy_find(order[i]), cores, 0.85, &c);
		print_row(order[i], &c, seeds, first);
		c.group[0].cost.miss_ns = POLL_NS;
		snprintf(name, sizeof(name), "%s, polls", order[i]);
		if (i > 0 && i < 5)
			print_row(name, &c, seeds, first);
	}
	group_search_fill(1, &next_color, cores, 0.85, &c);
	make_pools(&c, 1, 5000);
	print_row("pools, combiner a thread per core", &c, seeds, first);
	group_search_fill(1, &next_color, cores, 0.85, &c);
	make_pools(&c, cores, 5000);
	print_row("pools, all a thread per core", &c, seeds, first);
}

void table_search(int seeds)
{
	printf("| cores | schedule | rate/s | of color | mean, ms | of color | events a visit |\n"
	       "|---|---|---|---|---|---|---|\n");
	print_cores(8, seeds);
	print_cores(64, seeds);
}

/* ---- replicas and parts ---- */

void make_parts(struct sim_config *c, int n, const int *first, const int *cores)
{
	for (int p = 0; p < n; p++) {
		c->group[p] = c->group[0];
		c->group[p].cores = cores[p];
	}
	c->n_groups = n;
	for (int i = 0; i < c->n_stages; i++) {
		int p = n - 1;
		while (p > 0 && i < first[p])
			p--;
		c->stage[i].group = p + 1;
		c->stage[i].place = i - first[p];
		c->stage[i].threads_min = c->stage[i].threads_max = cores[p];
		c->stage[i].threads_start = cores[p];
	}
}

static void balance_row(const char *name, struct sim_config *c, int seeds, double *first)
{
	struct sim_config closed = *c;

	double v[3];

	close_loop(&closed, CLIENTS * c->cores);
	v[0] = run_seeds(&closed, seeds).per_s;
	close_loop(&closed, MANY * c->cores);
	v[1] = run_seeds(&closed, seeds).per_s;
	v[2] = run_seeds(c, seeds).mean_ms;
	for (int i = 0; i < 3; i++)
		first[i] = first[i] > 0 ? first[i] : v[i];
	printf("| %d | %s | %.0f | %.2f | %.0f | %.2f | %.1f | %.2f |\n", c->cores, name, v[0],
	    v[0] / first[0], v[1], v[1] / first[1], v[2], v[2] / first[2]);
	fflush(stdout);
}

/* Divisions of the graph: the first stage of each part, and its cores of 64 and of 8. */
static const struct {
	const char *name;
	double load; /* for the response */
	int n, first[4], of64[4], of8[4];
} divisions[] = {
    {"2 parts, cores by load", 0.7, 2, {0, 10}, {10, 54}, {1, 7}},
    {"4 parts, cores by load", 0.7, 4, {0, 3, 10, 11}, {3, 4, 53, 4}, {1, 1, 5, 1}},
    {"2 parts, equal cores (response at half the load)", 0.35, 2, {0, 10}, {32, 32}, {4, 4}},
    {"4 parts, equal cores (response at a fifth of the load)", 0.15, 4, {0, 3, 10, 11},
	{16, 16, 16, 16}, {2, 2, 2, 2}},
};

static void print_replicas(int cores, int seeds)
{
	struct sim_config c;
	double first[3] = {0};

	group_search_fill(1, &next_wavefront, cores, 0.7, &c);
	balance_row("one group", &c, seeds, first);
	for (int n = 2; n <= 8; n *= 2) {
		char name[64];
		group_search_fill(1, &next_wavefront, cores, 0.7, &c);
		c.group[0].replicas = n;
		snprintf(name, sizeof(name), "%d replicas", n);
		balance_row(name, &c, seeds, first);
	}
	for (size_t i = 0; i < sizeof(divisions) / sizeof(divisions[0]); i++) {
		group_search_fill(1, &next_wavefront, cores, divisions[i].load, &c);
		make_parts(&c, divisions[i].n, divisions[i].first,
		    cores == 64 ? divisions[i].of64 : divisions[i].of8);
		balance_row(divisions[i].name, &c, seeds, first);
	}
}

void table_replicas(int seeds)
{
	printf(
	    "| cores | wavefront | rate/s, %d clients per core | ratio | %d | ratio | mean, ms | "
	    "ratio |\n|---|---|---|---|---|---|---|---|\n",
	    CLIENTS, MANY);
	print_replicas(8, seeds);
	print_replicas(64, seeds);
}
