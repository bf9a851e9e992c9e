/* SPDX-License-Identifier: MIT */
/*
 * Prints what queues with `discipline: shortest`, the gate `cutoff` and the policy `srpt` do for
 * short requests if service times have a heavy tail, in virtual time (sim/tail.h), as a table in
 * Markdown.
 *
 *   tail_table [--seeds N] [--load L]
 *
 * "short" is the 99th percentile of the response times of requests with at most 1 ms of work, of all
 * seeds together; "of fifo" its ratio to that of the first row with the same graph. The same for the
 * mean of all requests, and for the 99th percentile of the long ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/tail.h"

struct row {
	const char *name;
	bool chain, shortest;
	const struct next_policy *policy;
	int64_t cutoff_ns, starve_ns;
	double hint_error;
};

static const struct row rows[] = {
    {"fifo", false, false, &next_fifo, 0, 0, 0},
    {"shortest", false, true, &next_fifo, 0, 0, 0},
    {"shortest, starve 250ms", false, true, &next_fifo, 0, 250000000, 0},
    {"shortest, starve 25ms", false, true, &next_fifo, 0, 25000000, 0},
    {"shortest, hints wrong by a factor of 4", false, true, &next_fifo, 0, 0, 3},
    {"cutoff 250us", false, false, &next_fifo, 250000, 0, 0},
    {"cutoff 1ms", false, false, &next_fifo, 1000000, 0, 0},
    {"cutoff 5ms", false, false, &next_fifo, 5000000, 0, 0},
    {"shortest, cutoff 1ms", false, true, &next_fifo, 1000000, 0, 0},
    {"fifo", true, false, &next_fifo, 0, 0, 0},
    {"srpt", true, false, &next_srpt, 0, 0, 0},
    {"srpt, cutoff 1ms", true, false, &next_srpt, 1000000, 0, 0},
};

struct figures {
	double brief_ms, mean_ms, tail_ms;
};

static struct figures run(const struct row *row, int cores, double load, int seeds)
{
	static struct tail_result r;
	static struct hdr brief, all, tail;

	memset(&brief, 0, sizeof(brief));
	memset(&all, 0, sizeof(all));
	memset(&tail, 0, sizeof(tail));
	for (int seed = 1; seed <= seeds; seed++) {
		struct tail_config c;

		tail_fill((uint64_t)seed, cores, load, &c);
		c.chain = row->chain;
		c.policy = row->policy;
		c.shortest = row->shortest;
		c.starve_ns = row->starve_ns;
		c.hint_error = row->hint_error;
		if (row->cutoff_ns > 0)
			c.limits =
			    (struct next_limits){.gate = NEXT_CUTOFF, .gate_ns = row->cutoff_ns};
		if (tail_run(&c, &r) != 0) {
			fprintf(stderr, "the simulation failed\n");
			exit(1);
		}
		hdr_merge(&brief, &r.brief);
		hdr_merge(&all, &r.all);
		hdr_merge(&tail, &r.tail);
	}
	return (struct figures){.brief_ms = (double)hdr_quantile_ns(&brief, 0.99) / 1e6,
	    .mean_ms = hdr_mean_ns(&all) / 1e6,
	    .tail_ms = (double)hdr_quantile_ns(&tail, 0.99) / 1e6};
}

static void print_cores(int cores, double load, int seeds)
{
	struct figures base = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct figures f = run(&rows[i], cores, load, seeds);

		if (i == 0 || rows[i].chain != rows[i - 1].chain)
			base = f;
		printf("| %d | %s | %s | %.2f | %.2f | %.2f | %.2f | %.0f | %.2f |\n", cores,
		    rows[i].chain ? "chain" : "one", rows[i].name, f.brief_ms,
		    f.brief_ms / base.brief_ms, f.mean_ms, f.mean_ms / base.mean_ms, f.tail_ms,
		    f.tail_ms / base.tail_ms);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const int cores[] = {1, 2, 8, 64};
	int seeds = 6;
	double load = 0.7;

	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--seeds") == 0)
			seeds = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--load") == 0)
			load = atof(argv[i + 1]);
	if (argc % 2 == 0 || seeds < 1 || !(load > 0 && load < 1)) {
		fprintf(stderr, "usage: tail_table [--seeds N] [--load L]\n");
		return 1;
	}
	printf("| cores | graph | | short, ms | of fifo | mean, ms | of fifo | long, ms | of fifo "
	       "|\n|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++)
		print_cores(cores[i], load, seeds);
	return 0;
}
