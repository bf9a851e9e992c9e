/* SPDX-License-Identifier: MIT */
/*
 * Simulates each admission policy with each workload in virtual time, and prints the tables of
 * bench/OVERLOAD.md.
 *
 *   overload_sim [--workload W2]... [--policy weir]... [--load 2]... [--resize weir] [--seeds N]
 *                [--for SECONDS] [--warmup SECONDS] [--width] [--csv | --json FILE]
 *
 * There is one row per workload and policy. For each load it shows three values: the goodput (the
 * rate of responses in time, divided by the capacity of the stages), in brackets the p99 response
 * time of completed requests in ms, and the share of class 0 that was served in time. Two more
 * columns show the share refused at the lowest load and the share of work wasted at the highest.
 * Wasted work excludes requests whose services alone took longer than their deadline: only a policy
 * that knew the service times in advance could avoid that work.
 *
 * With --width, every stage holds its events (docs/overload.md, "Stages that wait"): the other side
 * has a server per thread, and the width policy weir chooses how many events are in work. A warm-up
 * of 60 s lets the policy settle.
 *
 * All values are medians over the seeds. With a spike or a fault, goodput is measured over its
 * duration. "best static" is the policy `threshold` with the best threshold for each load. --csv
 * prints one line per run instead, for plots. --json FILE also writes the runs as rows of the
 * report (overload_report).
 *
 * In this model, refusing takes no time, and no kernel adds noise. If an invariant is violated
 * (docs/overload-derivation.md, "What must hold"), the program prints the last steps to stderr and
 * exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "overload_json.h"
#include "sim/sim.h"
#include "sim/workload.h"

#define LIST_MAX  16
#define SEEDS_MAX 32
/* the largest width, with --width */
#define WIDTH_MOST 1000

/* A row of the table: a policy, or the best of several thresholds. */
struct contender {
	const char *name;
	const struct admission_policy *policy;
	bool sweeps;
};

/* Thresholds tried for "best static", in events. In 100 ms, four threads serve 80 events of 5 ms,
 * or 400 of 1 ms. */
static const int64_t thresholds[] = {20, 40, 80, 160, 320, 640};

struct options {
	const struct sim_workload *workload[LIST_MAX];
	struct contender policy[LIST_MAX];
	const struct resize_policy *resize;
	double load[LIST_MAX];
	int n_workloads, n_policies, n_loads, seeds;
	double for_s, warmup_s;
	bool csv, width;
	FILE *json; /* NULL if not requested */
};

/* Results of one run for the table. */
struct figures {
	double goodput, p99_ms, refused, wasted, top;
};

static double median(double *v, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && v[k] < v[k - 1]; k--) {
			double t = v[k];
			v[k] = v[k - 1];
			v[k - 1] = t;
		}
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double ratio(double part, double all, double otherwise)
{
	return all > 0 ? part / all : otherwise;
}

static struct figures figures_of(const struct sim_workload *w, const struct sim_config *c,
    const struct sim_result *r, double capacity_per_s)
{
	const struct sim_class_result *top = &r->class[0];
	uint64_t offered = 0, shed = 0;
	int64_t from_ns, to_ns;

	sim_workload_span(w, c, &from_ns, &to_ns);
	for (int k = 0; k < c->n_classes; k++) {
		offered += r->class[k].offered;
		shed += sim_shed(&r->class[k]);
	}
	return (struct figures){.goodput = sim_goodput_per_s(c, r, from_ns, to_ns) / capacity_per_s,
	    .p99_ms = (double)sim_response_ns(c, r, 0.99) * 1e-6,
	    .refused = ratio((double)shed, (double)offered, 0),
	    .wasted = ratio((double)(r->wasted_ns - r->hopeless_ns), (double)r->service_ns, 0),
	    .top = ratio((double)top->in_time, (double)top->offered, 1)};
}

static void write_row(const struct options *o, const struct overload_run *run,
    const struct sim_config *c, const struct sim_result *r)
{
	if (overload_json_run(o->json, run, c, r) == 0)
		return;
	fputs("out of memory\n", stderr);
	exit(1);
}

/* Let all stages hold their events, with as many servers on the other side as they have threads. */
static void hold_all(struct sim_config *c)
{
	for (int i = 0; i < c->n_stages; i++) {
		struct sim_stage *st = &c->stage[i];
		st->servers = st->threads_max;
		st->width = &width_weir;
		st->resize = NULL;
		st->cpu_share = 0;
		st->batch_max = 1;
		st->batch_fixed_ns = 0;
		st->threads_min = 1;
		st->threads_start = WIDTH_FIRST;
		st->threads_max = WIDTH_MOST;
	}
}

/* Simulate one run. If `told` is set, the run is also written to the JSON file as a run of `p`. The
 * search for the best threshold leaves `told` unset, so that only the runs with the best threshold
 * are written. */
static struct figures run_one(const struct options *o, const struct sim_workload *w,
    const struct contender *p, int64_t threshold, double load, uint64_t seed, bool told)
{
	static struct sim_config c;
	struct sim_result *r;

	sim_workload_fill_warm(w, load, p->policy, w->pools ? o->resize : NULL, seed,
	    (int64_t)(o->warmup_s * 1e9), (int64_t)(o->for_s * 1e9), &c);
	for (int i = 0; i < c.n_stages; i++)
		c.stage[i].params.threshold = threshold;
	c.trace = stderr;
	if (o->width)
		hold_all(&c);
	double capacity_per_s = sim_capacity_per_s(&c);
	if (sim_run(&c, &r) != 0) {
		fprintf(stderr, "%s, policy %s, load %g: %s\n", w->name, p->name, load,
		    r ? r->breach : "out of memory");
		exit(1);
	}
	struct figures f = figures_of(w, &c, r, capacity_per_s);
	struct overload_run run = {.workload = w,
	    .policy = p->name,
	    .load = load,
	    .round = (int)seed,
	    .goodput = f.goodput,
	    .p99_ms = f.p99_ms,
	    .refused = f.refused,
	    .wasted = f.wasted};
	if (told && o->json)
		write_row(o, &run, &c, r);
	sim_result_free(r);
	return f;
}

/* Simulate one run per seed and return the medians. */
static struct figures run_seeds(const struct options *o, const struct sim_workload *w,
    const struct contender *p, int64_t threshold, double load, bool told)
{
	double v[5][SEEDS_MAX];

	for (int i = 0; i < o->seeds; i++) {
		struct figures f = run_one(o, w, p, threshold, load, (uint64_t)i + 1, told);
		v[0][i] = f.goodput;
		v[1][i] = f.p99_ms;
		v[2][i] = f.refused;
		v[3][i] = f.wasted;
		v[4][i] = f.top;
		if (o->csv && told)
			printf("%s,%s,%g,%d,%.4f,%.2f,%.5f,%.5f,%.5f\n", w->name, p->name, load,
			    i + 1, f.goodput, f.p99_ms, f.refused, f.wasted, f.top);
	}
	return (struct figures){median(v[0], o->seeds), median(v[1], o->seeds),
	    median(v[2], o->seeds), median(v[3], o->seeds), median(v[4], o->seeds)};
}

static struct figures run_contender(
    const struct options *o, const struct sim_workload *w, const struct contender *p, double load)
{
	struct figures best = {.goodput = -1};
	int64_t best_threshold = -1;

	if (!p->sweeps)
		return run_seeds(o, w, p, -1, load, true);
	for (size_t i = 0; i < sizeof(thresholds) / sizeof(thresholds[0]); i++) {
		struct figures f = run_seeds(o, w, p, thresholds[i], load, false);
		if (f.goodput <= best.goodput)
			continue;
		best = f;
		best_threshold = thresholds[i];
	}
	if (o->json || o->csv)
		run_seeds(o, w, p, best_threshold, load, true);
	return best;
}

static void print_row(
    const struct options *o, const struct sim_workload *w, const struct contender *p)
{
	struct figures f = {0};
	double refused = 0;

	printf("| %s |", p->name);
	for (int l = 0; l < o->n_loads; l++) {
		f = run_contender(o, w, p, o->load[l]);
		printf(" %.2f (%.0f) %.2f |", f.goodput, f.p99_ms, f.top);
		if (l == 0)
			refused = f.refused;
	}
	printf(" %.2f %% | %.1f %% |\n", refused * 100, f.wasted * 100);
	fflush(stdout);
}

static void print_table(const struct options *o, const struct sim_workload *w)
{
	printf("\n%s: %s. Goodput / capacity (p99 in ms), success of class 0\n\n| policy |",
	    w->name, w->help);
	for (int l = 0; l < o->n_loads; l++)
		printf(" %gx |", o->load[l]);
	printf(" refused at %gx | wasted at %gx |\n|---|", o->load[0], o->load[o->n_loads - 1]);
	for (int l = 0; l < o->n_loads + 2; l++)
		printf("---|");
	putchar('\n');
	for (int p = 0; p < o->n_policies; p++)
		print_row(o, w, &o->policy[p]);
}

/* ---- options ---- */

static void usage(void)
{
	fputs("usage: overload_sim [--workload W2]... [--policy NAME]... [--load 2]... "
	      "[--resize NAME] [--seeds N] [--for SECONDS] [--warmup SECONDS] [--width] [--csv | "
	      "--json FILE]\n",
	    stderr);
	exit(2);
}

static void add_policy(struct options *o, const char *name)
{
	struct contender c = {.name = name, .policy = admission_find(name)};

	if (strcmp(name, "best static") == 0)
		c = (struct contender){name, &admission_threshold, true};
	if (!c.policy || o->n_policies == LIST_MAX)
		usage();
	o->policy[o->n_policies++] = c;
}

/* Apply an option and its value. */
static void take(struct options *o, const char *name, const char *value)
{
	const struct sim_workload *w = sim_workload_find(value);

	if (strcmp(name, "--workload") == 0 && o->n_workloads < LIST_MAX && w)
		o->workload[o->n_workloads++] = w;
	else if (strcmp(name, "--policy") == 0)
		add_policy(o, value);
	else if (strcmp(name, "--load") == 0 && o->n_loads < LIST_MAX)
		o->load[o->n_loads++] = strtod(value, NULL);
	else if (strcmp(name, "--resize") == 0 && resize_find(value))
		o->resize = resize_find(value);
	else if (strcmp(name, "--seeds") == 0)
		o->seeds = (int)strtol(value, NULL, 10);
	else if (strcmp(name, "--for") == 0)
		o->for_s = strtod(value, NULL);
	else if (strcmp(name, "--warmup") == 0)
		o->warmup_s = strtod(value, NULL);
	else if (strcmp(name, "--json") == 0 && !o->json)
		o->json = fopen(value, "w");
	else
		usage();
}

/* Set unspecified options to all workloads, policies and loads. */
static void complete(struct options *o)
{
	static const double loads[] = {0.5, 1, 2, 5, 10};

	if (o->n_workloads == 0)
		for (int i = 0; sim_workload_at(i); i++)
			o->workload[o->n_workloads++] = sim_workload_at(i);
	if (o->n_policies == 0) {
		for (int i = 0; admission_at(i); i++)
			add_policy(o, admission_at(i)->name);
		add_policy(o, "best static");
	}
	if (o->n_loads == 0) {
		memcpy(o->load, loads, sizeof(loads));
		o->n_loads = sizeof(loads) / sizeof(loads[0]);
	}
	if (o->csv && o->json)
		usage();
	if (o->seeds < 1 || o->seeds > SEEDS_MAX || !(o->for_s >= 1 && o->for_s <= 36000) ||
	    !(o->warmup_s >= 1 && o->warmup_s <= 3600))
		usage();
}

int main(int argc, char **argv)
{
	struct options o = {.seeds = 3, .for_s = 20, .warmup_s = 2, .resize = resize_find("weir")};

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--csv") == 0) {
			o.csv = true;
			continue;
		}
		if (strcmp(argv[i], "--width") == 0) {
			o.width = true;
			o.warmup_s = 60;
			continue;
		}
		if (i + 1 == argc)
			usage();
		take(&o, argv[i], argv[i + 1]);
		i++;
	}
	complete(&o);
	if (o.json && overload_json_about(o.json, argc, argv) != 0)
		return 1;
	if (o.csv)
		puts("workload,policy,load,seed,goodput_ratio,p99_ms,refused,wasted,top_success");
	for (int w = 0; w < o.n_workloads; w++) {
		if (!o.csv) {
			print_table(&o, o.workload[w]);
			continue;
		}
		for (int p = 0; p < o.n_policies; p++)
			for (int l = 0; l < o.n_loads; l++)
				run_contender(&o, o.workload[w], &o.policy[p], o.load[l]);
	}
	if (o.json && (ferror(o.json) | fclose(o.json)) != 0) {
		fputs("overload_sim: the rows could not be written\n", stderr);
		return 1;
	}
	return 0;
}
