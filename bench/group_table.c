/* SPDX-License-Identifier: MIT */
/*
 * Prints the response times of the search engine of Gordon's thesis (sim/group_search.c) with each
 * policy and gate of core groups, in virtual time, as a table in Markdown.
 *
 *   group_table [--seeds N] [--load L]
 *
 * The columns after the gate are: the mean response time in ms, as the median over the seeds; its
 * ratio to that of `color` with the gate `all`; the 99th percentile of all seeds together; and the
 * share of batches that began a visit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/group_search.h"

#define SEEDS_MAX 64

struct gate_row {
	const char *name;
	enum next_gate gate;
	uint32_t events;
	int64_t ns;
};

static const struct gate_row gates[] = {
    {"all", NEXT_ALL, 0, 0},
    {"arrived", NEXT_ARRIVED, 0, 0},
    {"events: 4", NEXT_EVENTS, 4, 0},
    {"events: 16", NEXT_EVENTS, 16, 0},
    {"time: 1ms", NEXT_TIME, 0, 1000000},
    {"time: 10ms", NEXT_TIME, 0, 10000000},
};

struct figures {
	double mean_ms, p99_ms, begun;
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct figures run(const struct next_policy *policy, const struct gate_row *gate, int cores,
    double load, int seeds)
{
	static struct hdr all;
	double mean[SEEDS_MAX];
	uint64_t visits = 0, batches = 0;

	memset(&all, 0, sizeof(all));
	for (int seed = 0; seed < seeds; seed++) {
		struct sim_result *r = NULL;
		struct sim_config c;

		group_search_fill((uint64_t)seed + 1, policy, cores, load, &c);
		c.group[0].limits.gate = gate->gate;
		c.group[0].limits.gate_events = gate->events;
		c.group[0].limits.gate_ns = gate->ns;
		if (sim_run(&c, &r) != 0) {
			fprintf(stderr, "the simulation failed: %s\n", r ? r->breach : "memory");
			exit(1);
		}
		mean[seed] = hdr_mean_ns(&r->class[0].response) / 1e6;
		hdr_merge(&all, &r->class[0].response);
		for (int i = 0; i < c.n_stages; i++) {
			visits += r->stage[i].visits;
			batches += r->stage[i].batches;
		}
		sim_result_free(r);
	}
	qsort(mean, (size_t)seeds, sizeof(*mean), ascending);
	return (struct figures){.mean_ms = (mean[(seeds - 1) / 2] + mean[seeds / 2]) / 2,
	    .p99_ms = (double)hdr_quantile_ns(&all, 0.99) / 1e6,
	    .begun = (double)visits / (double)batches};
}

static void print_cores(int cores, double load, int seeds)
{
	double color = run(&next_color, &gates[0], cores, load, seeds).mean_ms;

	for (int p = 0; next_policy_at(p); p++)
		for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
			struct figures f = run(next_policy_at(p), &gates[i], cores, load, seeds);

			printf("| %d | %s | %s | %.1f | %.2f | %.0f | %.2f |\n", cores,
			    next_policy_at(p)->name, gates[i].name, f.mean_ms, f.mean_ms / color,
			    f.p99_ms, f.begun);
			fflush(stdout);
		}
}

int main(int argc, char **argv)
{
	int seeds = 6;
	double load = 0.85;

	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--seeds") == 0)
			seeds = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--load") == 0)
			load = atof(argv[i + 1]);
	if (argc % 2 == 0 || seeds < 1 || seeds > SEEDS_MAX || !(load > 0 && load < 1)) {
		fprintf(stderr, "usage: group_table [--seeds N] [--load L]\n");
		return 1;
	}
	printf("| cores | policy | gate | mean, ms | of color | 99 %%, ms | visits a batch |\n"
	       "|---|---|---|---|---|---|---|\n");
	print_cores(8, load, seeds);
	print_cores(64, load, seeds);
	return 0;
}
