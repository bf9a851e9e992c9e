/* SPDX-License-Identifier: MIT */
/*
 * Prints the tables of bench/SCHEDULING.md that are made in virtual time.
 *
 *   scheduling [--seeds N] [TABLE...]     all tables if none is named
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables.h"

#define SEEDS_MAX 32

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), ascending);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

static struct outcome outcome_of(const struct sim_config *c, const struct sim_result *r)
{
	double visits = 0, batches = 0, events = 0, busy_ns = 0, cores = 0;
	struct hdr all = {0};
	uint64_t done = 0;

	for (int k = 0; k < c->n_classes; k++) {
		hdr_merge(&all, &r->class[k].response);
		done += r->class[k].in_time + r->class[k].late;
	}
	for (int i = 0; i < c->n_stages; i++) {
		visits += (double)r->stage[i].visits;
		batches += (double)r->stage[i].batches;
		events += (double)r->stage[i].batched;
	}
	double strangers = 0, switched = 0, reloaded = 0;
	for (int g = 0; g < c->n_groups; g++) {
		strangers += (double)r->group[g].strangers;
		switched += (double)r->group[g].switched;
		reloaded += (double)r->group[g].reloaded;
		cores += c->group[g].cores;
		for (int k = 0; k < c->group[g].cores; k++)
			busy_ns += (double)r->group[g].busy_ns[k];
	}
	double s = (double)c->measured_ns / 1e9;
	return (struct outcome){.per_s = (double)done / s,
	    .mean_ms = hdr_mean_ns(&all) / 1e6,
	    .p50_ms = (double)hdr_quantile_ns(&all, 0.5) / 1e6,
	    .p99_ms = (double)hdr_quantile_ns(&all, 0.99) / 1e6,
	    .busy = busy_ns / (double)c->measured_ns / cores,
	    .per_visit = visits > 0 ? events / visits : 0,
	    .batches_per_s = batches / s,
	    .switches = batches > 0 ? visits / batches : 0,
	    .strangers = strangers / (double)done,
	    .switched = switched / (double)done,
	    .reloaded = reloaded / (double)done};
}

struct outcome run_seeds(struct sim_config *c, int seeds)
{
	double v[sizeof(struct outcome) / sizeof(double)][SEEDS_MAX];
	const size_t n = sizeof(struct outcome) / sizeof(double);
	double m[sizeof(struct outcome) / sizeof(double)];
	struct outcome out;

	for (int i = 0; i < seeds; i++) {
		struct sim_result *r = NULL;
		c->seed = (uint64_t)i + 1;
		if (sim_run(c, &r) != 0) {
			fprintf(stderr, "the simulation failed: %s\n", r ? r->breach : "memory");
			exit(1);
		}
		struct outcome one = outcome_of(c, r);
		memcpy(m, &one, sizeof(m));
		for (size_t k = 0; k < n; k++)
			v[k][i] = m[k];
		sim_result_free(r);
	}
	for (size_t k = 0; k < n; k++)
		m[k] = median(v[k], seeds);
	memcpy(&out, m, sizeof(out));
	return out;
}

void close_loop(struct sim_config *c, int clients)
{
	for (int i = 0; i < c->n_sources; i++) {
		c->source[i].arrivals = SIM_CLOSED;
		c->source[i].clients = i == 0 ? clients : 0;
		c->source[i].any_route = true;
	}
}

static const struct {
	const char *name, *title;
	void (*print)(int seeds);
} tables[] = {
    {"search", "Gordon, tables 4.9 to 4.11", table_search},
    {"misses", "Gordon, tables 4.12, 4.13, 4.17 and 4.18", table_misses},
    {"replicas", "Gordon, tables 4.14 to 4.16", table_replicas},
    {"cutoff", "Harizopoulos and Ailamaki, gates with a heavy tail", table_cutoff},
    {"queues", "libasync-smp, table 2", table_queues},
    {"clients", "libasync-smp, figures 7 and 9", table_clients},
    {"cohorts", "Larus and Parkes, figures 6 to 8", table_cohorts},
};

int main(int argc, char **argv)
{
	int seeds = 5, from = 1;

	if (argc > 2 && strcmp(argv[1], "--seeds") == 0) {
		seeds = atoi(argv[2]);
		from = 3;
	}
	if (seeds < 1 || seeds > SEEDS_MAX || (argc > from && argv[from][0] == '-')) {
		fprintf(stderr, "usage: scheduling [--seeds N] [TABLE...]\n");
		return 1;
	}
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		bool asked = argc == from;
		for (int i = from; i < argc; i++)
			asked |= strcmp(argv[i], tables[t].name) == 0;
		if (!asked)
			continue;
		printf("\n%s\n\n", tables[t].title);
		tables[t].print(seeds);
		fflush(stdout);
	}
	return 0;
}
