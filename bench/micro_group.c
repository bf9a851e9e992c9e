/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of a hop between two stages that the same thread serves.
 *
 *   inline     The main thread offers runs of events to the first of STAGES inline stages. The row
 *              shows its CPU time per event and stage, less the time to initialise the event.
 *   group      The stages are a circle in a group of one thread. Runs of events go round while the
 *              main thread sleeps. The row shows the CPU time of the process per event and stage,
 *              and the median of its ratio to that of the round of `inline` before it.
 *   two cores  The main thread on core 0 offers runs of events, as fast as it can, to the first of
 *              two stages of a group of one thread on core 1. The row shows the ns per event of the
 *              slower side, as "hop, two cores" of micro_hop does for a single stage.
 *
 * Handlers do nothing, so the rows show only what weir does for a hop.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"

#define STAGES    6
#define EVENTS    4096
#define IN_FLIGHT 3072     /* maximum in flight, so that no queue refuses */
#define ITEMS     200000   /* events per round in the rows of the main thread */
#define ROUND_NS  50000000 /* of CPU time, in the rows of a circle */
#define LOOK_NS   5000000  /* time between two looks at the CPU time */

static struct weir_event events[EVENTS] __attribute__((aligned(64)));

/* Written by one thread at a time: events that have been handled by a stage of the circle, events
 * that have ended, and batches of the circle. */
static _Alignas(64) atomic_ulong hops, ended, batches;
static _Alignas(64) atomic_bool stop; /* the circle ends its events */
static int handler_core;

static void add(atomic_ulong *to, unsigned long n)
{
	atomic_store_explicit(
	    to, atomic_load_explicit(to, memory_order_relaxed) + n, memory_order_release);
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* ---- the stages ---- */

static void group_finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type group_type = {
    .name = "hop", .size = sizeof(struct weir_event), .finish = group_finish};

static void pass_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	weir_emit_run(st, 0, ev, n);
}

static void end_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
	add(&ended, (unsigned long)n);
}

static void circle_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	add(&hops, (unsigned long)n);
	add(&batches, 1);
	if (atomic_load_explicit(&stop, memory_order_relaxed))
		end_handle(st, ev, n);
	else
		weir_emit_run(st, 0, ev, n);
}

static int pin_handler(struct weir_stage *st)
{
	(void)st;
	bench_pin(handler_core);
	return 0;
}

static int pin_none(struct weir_stage *st)
{
	(void)st;
	return 0;
}

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, true, "events as they came"}, {.name = NULL}};

#define OPS(id, text, fn, init, out)                                                               \
	static const struct weir_stage_ops id = {.abi = WEIR_STAGE_ABI,                            \
	    .name = text,                                                                          \
	    .summary = "bench",                                                                    \
	    .accepts = &group_type,                                                                \
	    .outlets = out,                                                                        \
	    .handle = fn,                                                                          \
	    .thread_init = init}
OPS(pass_ops, "b.pass", pass_handle, pin_none, outlets);
OPS(end_ops, "b.end", end_handle, pin_none, NULL);
OPS(circle_ops, "b.circle", circle_handle, pin_handler, outlets);
OPS(first_ops, "b.first", pass_handle, pin_handler, outlets);
OPS(last_ops, "b.last", end_handle, pin_handler, NULL);

/* ---- graphs ---- */

static struct weir_stage_spec *add_stage(struct weir_spec *spec, int i, const char *use)
{
	char name[16];

	snprintf(name, sizeof(name), "s%d", i);
	return weir_spec_add_stage(spec, name, use);
}

static void link_to(struct weir_stage_spec *s, int to, bool loop)
{
	char name[16];

	snprintf(name, sizeof(name), "s%d", to);
	weir_spec_link(s, "", name, loop);
}

static void add_group(struct weir_spec *spec, const char *name)
{
	struct weir_group_spec *group = weir_spec_add_group(spec, name);

	group->threads.min = group->threads.max = 1;
}

static struct weir_spec *inline_spec(void)
{
	struct weir_spec *spec = weir_spec_new("bench");

	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s = add_stage(spec, i, i + 1 < STAGES ? "b.pass" : "b.end");
		s->inlined = true;
		if (i + 1 < STAGES)
			link_to(s, i + 1, false);
	}
	return spec;
}

static struct weir_spec *circle_spec(void)
{
	struct weir_spec *spec = weir_spec_new("bench");

	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s = add_stage(spec, i, "b.circle");
		weir_spec_text(&s->group, "core");
		link_to(s, (i + 1) % STAGES, i + 1 == STAGES);
	}
	add_group(spec, "core");
	return spec;
}

static struct weir_spec *pair_spec(void)
{
	struct weir_spec *spec = weir_spec_new("bench");

	for (int i = 0; i < 2; i++) {
		struct weir_stage_spec *s = add_stage(spec, i, i == 0 ? "b.first" : "b.last");
		weir_spec_text(&s->group, "core");
		weir_spec_text(&s->admission.policy, "none"); /* the queues are long */
		if (i == 0)
			link_to(s, 1, false);
	}
	add_group(spec, "core");
	return spec;
}

static struct weir_graph *graph_of(struct weir_spec *spec)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	if (!errs || weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0) {
		fprintf(stderr, "graph: %s\n", errs ? errs->err[0].text : "no memory");
		exit(1);
	}
	free(errs);
	return g;
}

static void graph_end(struct weir_graph *g)
{
	struct weir_drain_report r;

	weir_graph_drain(g, 10000000000LL, &r);
	weir_graph_free(g);
	if (r.law_error != 0 || r.closed != 0) {
		fprintf(stderr, "events were lost (%ld) or closed before they were complete\n",
		    (long)r.law_error);
		exit(1);
	}
}

/* ---- rounds ---- */

struct hop {
	struct weir_stage *first; /* NULL: only initialise the events */
	int run;
};

static void make_run(struct weir_event **run, unsigned long at, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *ev = &events[(at + (unsigned long)i) % EVENTS];
		ev->state = WEIR_EVENT_IDLE;
		weir_event_init(ev, &group_type, 1);
		run[i] = ev;
	}
	__asm__ volatile("" : : "r"(run) : "memory");
}

static void offer_run(const struct hop *h, struct weir_event **run)
{
	if (weir_offer(h->first, run, h->run, NULL) != h->run) {
		fprintf(stderr, "the stage refused events: other processes used the cores for too "
				"long\n");
		exit(1);
	}
}

/* The CPU time of the main thread per event. */
static double send_run(void *arg)
{
	const struct hop *h = arg;
	struct weir_event *run[WEIR_BATCH_MAX];
	unsigned long sent = 0;

	int64_t start = cpu_ns();
	for (; sent < ITEMS; sent += (unsigned long)h->run) {
		make_run(run, sent, h->run);
		if (h->first)
			offer_run(h, run);
	}
	double each = (double)(cpu_ns() - start) / (double)sent;
	for (int i = 0; i < EVENTS; i++)
		events[i].state = WEIR_EVENT_IDLE;
	return each;
}

/* The CPU time of the process per event and stage, while `run` events go round. */
static double circle_run(void *arg)
{
	const struct hop *h = arg;
	struct weir_event *run[WEIR_BATCH_MAX];
	struct timespec look = {0, LOOK_NS};

	atomic_store(&stop, false);
	atomic_store(&ended, 0);
	make_run(run, 0, h->run);
	offer_run(h, run);
	nanosleep(&look, NULL); /* the first batches are small: their service time is not known */
	unsigned long n = atomic_load(&hops), b = atomic_load(&batches);
	int64_t start = cpu_ns(), now;
	do {
		nanosleep(&look, NULL);
		now = cpu_ns();
	} while (now - start < ROUND_NS);
	n = atomic_load(&hops) - n;
	b = atomic_load(&batches) - b;
	atomic_store(&stop, true);
	while (atomic_load(&ended) < (unsigned long)h->run)
		nanosleep(&look, NULL);
	if ((double)n / (double)b < 0.95 * h->run) {
		fprintf(stderr, "the runs of %d have become batches of %.1f\n", h->run,
		    (double)n / (double)b);
		exit(1);
	}
	return (double)(now - start) / (double)n;
}

/* ns per event of the slower of two cores. */
static double pair_run(void *arg)
{
	const struct hop *h = arg;
	struct weir_event *run[WEIR_BATCH_MAX];
	unsigned long sent = 0;

	bench_pin(0);
	atomic_store(&ended, 0);
	int64_t start = bench_now_ns();
	for (; sent < ITEMS; sent += (unsigned long)h->run) {
		while (sent - atomic_load_explicit(&ended, memory_order_acquire) > IN_FLIGHT)
			__builtin_ia32_pause();
		make_run(run, sent, h->run);
		offer_run(h, run);
	}
	while (atomic_load_explicit(&ended, memory_order_acquire) < sent)
		__builtin_ia32_pause();
	return (double)(bench_now_ns() - start) / (double)sent;
}

/* ---- the table ---- */

#define RUNS 3
static const int runs[RUNS] = {64, 8, 1};

static void row(const char *what, int run, const double v[3], bool far)
{
	printf("%-24s %5d %9.1f %9.1f %9.1f%s", what, run, v[0], v[1], v[2],
	    far ? " (cores far)" : "");
}

static void print_row(const char *what, int run, struct bench_stat s)
{
	const double v[3] = {s.median, s.low, s.high};

	row(what, run, v, false);
}

/* One round of a graph whose events the main thread offers. */
static double round_of(struct weir_graph *g, double (*run)(void *arg), int n)
{
	struct hop h = {g ? weir_graph_stage(g, "s0") : NULL, n};

	if (g && weir_thread_attach(g, "bench") != 0)
		exit(1);
	double value = run(&h);
	if (g)
		weir_thread_detach();
	return value;
}

/* Rounds of both kinds alternate, since other work on the machine changes both. */
static void one_core_rows(void)
{
	static const double aims[RUNS] = {1.8, 2.6, 3};
	double in[BENCH_ROUNDS], group[BENCH_ROUNDS], ratio[BENCH_ROUNDS];

	handler_core = 0;
	struct weir_graph *line = graph_of(inline_spec()), *circle = graph_of(circle_spec());
	for (int i = 0; i < RUNS; i++) {
		for (int k = 0; k < BENCH_ROUNDS; k++) {
			in[k] = (round_of(line, send_run, runs[i]) -
				    round_of(NULL, send_run, runs[i])) /
				STAGES;
			group[k] = round_of(circle, circle_run, runs[i]);
			ratio[k] = group[k] / in[k];
		}
		print_row("inline", runs[i], bench_summary(in, BENCH_ROUNDS));
		printf("\n");
		print_row("group, one core", runs[i], bench_summary(group, BENCH_ROUNDS));
		printf("   %.2f of inline (<= %.1f)\n", bench_summary(ratio, BENCH_ROUNDS).median,
		    aims[i]);
		fflush(stdout);
	}
	graph_end(line);
	graph_end(circle);
}

static void pair_rows(void)
{
	handler_core = 1;
	struct weir_graph *g = graph_of(pair_spec());
	if (weir_thread_attach(g, "bench") != 0)
		exit(1);
	for (int i = 0; i < RUNS; i++) {
		struct hop h = {weir_graph_stage(g, "s0"), runs[i]};
		struct bench_stat s = bench_measure(pair_run, &h);
		const double v[3] = {s.median, s.low, s.high};
		row("group, two cores", runs[i], v, s.far);
		printf("\n");
		fflush(stdout);
	}
	weir_thread_detach();
	graph_end(g);
}

int main(void)
{
	static const struct weir_stage_ops *const types[] = {
	    &pass_ops, &end_ops, &circle_ops, &first_ops, &last_ops};
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (weir_stage_register(types[i], &err) != 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
	bench_header("micro_group");
	printf(
	    "%-24s %5s %9s %9s %9s\n", "ns per event and stage", "runs", "median", "low", "high");
	one_core_rows();
	pair_rows();
	return 0;
}
