/* SPDX-License-Identifier: MIT */
/*
 * Overloads a stage whose events are the children of others, and shows where the overload is refused:
 * at the front door, before any work has been done for an event, or later.
 *
 * Jobs arrive at `split` in a Poisson process. Each is split into CHILDREN parts, which wait for the
 * one thread of `work`. A job whose parts did not all end as WEIR_OK fails, so the work of its other
 * parts is wasted. The rows show, for a load relative to the capacity of `work`: goodput relative to
 * the capacity, the share of all refusals that were made at the front door, and the share of handled
 * parts that were wasted, all after a warm-up.
 *
 * Usage: micro_fanout [LOAD=3] [SECONDS=10] [SEED=1]
 */
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/graph.h>
#include <weir/random.h>
#include <weir/stage.h>

#include "bench.h"

#define CHILDREN 8
#define WORK_NS  200000
#define SLO      "100ms"
#define WARM_NS  2000000000LL

struct job {
	_Alignas(64) struct weir_event ev;
	struct weir_op op;
	bool counts; /* arrived after the warm-up */
};

struct part {
	_Alignas(64) struct weir_event ev;
	struct weir_op op;
	bool handled;
};

static atomic_ulong good, failed, refused, in, handled, wasted;

static void job_finish(struct weir_event *ev, int status)
{
	if (((struct job *)ev)->counts)
		atomic_fetch_add(status == WEIR_OK ? &good : &failed, 1);
	atomic_fetch_add(&in, -1UL);
	free(ev);
}

static const struct weir_event_type job_type = {.name = "job",
    .size = sizeof(struct job),
    .finish = job_finish,
    .op = offsetof(struct job, op)};
static const struct weir_event_type part_type = {
    .name = "part", .size = sizeof(struct part), .op = offsetof(struct part, op)};

static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		int status = weir_ended_status(ev[i]);
		bool counts = ((struct job *)ev[i])->counts;
		for (struct weir_event *c = weir_ended(ev[i]); c && counts; c = c->next)
			if (((struct part *)c)->handled) {
				atomic_fetch_add(&handled, 1);
				atomic_fetch_add(&wasted, status != WEIR_OK);
			}
		weir_event_finish(&ev[i], status);
	}
}

static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < CHILDREN; k++) {
			struct weir_event *c = weir_event_new(st, &part_type);
			weir_child(st, ev[i], 0, &c);
		}
		weir_await(st, &ev[i], joined);
	}
}

static void work_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		for (int64_t until_ns = bench_now_ns() + WORK_NS; bench_now_ns() < until_ns;)
			continue;
		((struct part *)ev[i])->handled = true;
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_outlet outlets[] = {{"part", &part_type, false, "parts"}, {.name = NULL}};
static const struct weir_stage_ops split_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.split",
    .summary = "bench",
    .accepts = &job_type,
    .outlets = outlets,
    .children = 1,
    .handle = split_handle};
static const struct weir_stage_ops work_ops = {.abi = WEIR_STAGE_ABI,
    .name = "b.work",
    .summary = "bench",
    .accepts = &part_type,
    .handle = work_handle};

static struct weir_graph *graph_of(void)
{
	struct weir_spec *spec = weir_spec_new("fanout");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;
	char why[200];

	weir_spec_add_stage(spec, "work", "b.work");
	struct weir_stage_spec *split = weir_spec_add_stage(spec, "split", "b.split");
	weir_spec_link(split, "", "work", false);
	for (int i = 0; i < 2; i++) {
		spec->stages[i].threads.min = spec->stages[i].threads.max = 1;
		weir_stage_spec_set(&spec->stages[i], "slo", SLO, why, sizeof(why));
		weir_stage_spec_set(&spec->stages[i], "queue.limit", "10000", why, sizeof(why));
	}
	if (!errs || weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0) {
		fprintf(stderr, "graph: %s\n", errs ? errs->err[0].text : "no memory");
		exit(1);
	}
	free(errs);
	return g;
}

static void sleep_until(int64_t at_ns)
{
	struct timespec ts = {at_ns / 1000000000LL, at_ns % 1000000000LL};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Offer jobs at `rate` per second until `end_ns`. */
static void load(struct weir_graph *g, double rate, int64_t warm_ns, int64_t end_ns, uint64_t seed)
{
	struct weir_stage *to = weir_graph_stage(g, "split");
	double at_ns = (double)bench_now_ns();

	for (uint64_t i = 0; at_ns < (double)end_ns; i++) {
		double u = ((double)(weir_random_at(seed, i) >> 11) + 1) / 9007199254740993.0;
		at_ns += -log(u) / rate * 1e9;
		if ((double)bench_now_ns() < at_ns)
			sleep_until((int64_t)at_ns);
		struct job *j = aligned_alloc(64, sizeof(*j));
		struct weir_event *ev = &j->ev;
		memset(j, 0, sizeof(*j));
		j->counts = at_ns > (double)warm_ns;
		weir_event_init(ev, &job_type, (int64_t)at_ns);
		atomic_fetch_add(&in, 1);
		if (weir_offer(to, &ev, 1, NULL) == 1)
			continue;
		atomic_fetch_add(&refused, j->counts);
		atomic_fetch_add(&in, -1UL);
		free(j);
	}
}

int main(int argc, char **argv)
{
	double ratio = argc > 1 ? atof(argv[1]) : 3;
	double seconds = argc > 2 ? atof(argv[2]) : 10;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	double capacity = 1e9 / WORK_NS / CHILDREN;
	struct weir_drain_report report;
	struct weir_err err;

	if (weir_stage_register(&split_ops, &err) || weir_stage_register(&work_ops, &err))
		return 1;
	bench_header("micro_fanout");
	struct weir_graph *g = graph_of();
	weir_thread_attach(g, "load");
	int64_t warm_ns = bench_now_ns() + WARM_NS;
	load(g, ratio * capacity, warm_ns, warm_ns + (int64_t)(seconds * 1e9), seed);
	while (atomic_load(&in) > 0)
		sleep_until(bench_now_ns() + 1000000);
	weir_thread_detach();
	weir_graph_drain(g, 1000000000, &report);
	weir_graph_free(g);
	unsigned long all = good + failed + refused;
	printf("load %.2f: %lu jobs, goodput %.3f of capacity, %lu refused at the front door "
	       "(%.3f of all that did not succeed), %lu failed later, wasted work %.4f\n",
	    ratio, all, (double)good / seconds / capacity, refused,
	    refused + failed ? (double)refused / (double)(refused + failed) : 1, failed,
	    handled ? (double)wasted / (double)handled : 0);
	return 0;
}
