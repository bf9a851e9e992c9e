/* SPDX-License-Identifier: MIT */
/*
 * Measures payloads in one thread: a run of events passes an inline stage.
 *
 *   bare      the type of the events has no table; the stage finishes them
 *   table     the type has a table, which stays empty: what payloads cost an event that has none
 *   find      the stage looks for a payload that is not there, then finishes the event
 *   make      the stage makes a payload of 64 bytes and finds it, and it is dropped with the event
 *   malloc    like `table`, and a malloc and a free of the same size, cleared
 *   reserve   like `make`, and the stage reserves memory for the payload
 *
 * The stages take turns; each row is the median of its turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>
#include <weir/payload.h>
#include <weir/stage.h>

#include "bench.h"

#define EVENTS WEIR_BATCH_MAX
#define TURNS  3000

enum kind { BARE, TABLE, FIND, MAKE, MALLOC, RESERVE, KINDS };

struct laden {
	struct weir_event ev;
	struct weir_payloads payloads;
} __attribute__((aligned(64)));

static struct laden events[EVENTS];
static struct weir_stage *stage[KINDS];
static long found;

static void end(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type bare_type = {
    .name = "bare", .size = sizeof(struct laden), .finish = end};
static const struct weir_event_type laden_type = {.name = "laden",
    .size = sizeof(struct laden),
    .finish = end,
    .payloads = offsetof(struct laden, payloads)};
static const struct weir_payload_type cargo_type = {.name = "cargo", .size = 64};

static void finish(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static void find(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		found += weir_payload(ev[i], &cargo_type) != NULL;
	finish(st, ev, n);
}

static void make(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		if (!weir_payload_new(st, ev[i], &cargo_type))
			exit(1);
	find(st, ev, n);
}

static void allocate(struct weir_stage *st, struct weir_event **ev, int n)
{
	static void *memory[EVENTS];

	for (int i = 0; i < n; i++) {
		memory[i] = calloc(1, cargo_type.size + 32);
		__asm__ volatile("" ::"r"(memory[i]) : "memory");
	}
	for (int i = 0; i < n; i++)
		free(memory[i]);
	finish(st, ev, n);
}

static void reserve(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		void *payload = weir_payload_new(st, ev[i], &cargo_type);
		if (!payload || weir_payload_reserve(st, payload, 1000) != 0)
			exit(1);
	}
	find(st, ev, n);
}

static const struct {
	const char *name;
	void (*handle)(struct weir_stage *st, struct weir_event **ev, int n);
} rows[KINDS] = {{"bare", finish}, {"table", finish}, {"find", find}, {"make", make},
    {"malloc", allocate}, {"reserve", reserve}};

static struct weir_graph *make_graph(void)
{
	static struct weir_stage_ops ops[KINDS];
	struct weir_spec *spec = weir_spec_new("bench");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;
	struct weir_err err = {0};

	for (int k = 0; k < KINDS; k++) {
		ops[k] = (struct weir_stage_ops){.abi = WEIR_STAGE_ABI,
		    .name = rows[k].name,
		    .summary = "bench",
		    .accepts = k == BARE ? &bare_type : &laden_type,
		    .handle = rows[k].handle};
		weir_stage_register(&ops[k], &err);
		struct weir_stage_spec *s = weir_spec_add_stage(spec, rows[k].name, rows[k].name);
		s->inlined = true;
		weir_spec_text(&s->admission.policy, "none");
	}
	if (weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "graph: %s\n", errs->err[0].text);
		exit(1);
	}
	free(errs);
	for (int k = 0; k < KINDS; k++)
		stage[k] = weir_graph_stage(g, rows[k].name);
	return g;
}

static double turn(int k)
{
	struct weir_event *run[EVENTS];
	int64_t start_ns = bench_now_ns();

	for (int i = 0; i < EVENTS; i++) {
		run[i] = &events[i].ev;
		weir_event_init(run[i], k == BARE ? &bare_type : &laden_type, start_ns);
	}
	weir_offer(stage[k], run, EVENTS, NULL);
	weir_thread_flush();
	return (double)(bench_now_ns() - start_ns) / EVENTS;
}

/* The median of the turns of row *arg; the other rows run between them. */
static double measure(void *arg)
{
	static double took_ns[TURNS];
	int want = *(const int *)arg;

	bench_pin(0);
	for (int i = 0; i < TURNS; i++)
		for (int k = 0; k < KINDS; k++) {
			double ns = turn(k);
			if (k == want)
				took_ns[i] = ns;
		}
	return bench_summary(took_ns, TURNS).median;
}

int main(void)
{
	bench_header("micro_payload");
	printf("%-20s %9s %9s %9s\n", "ns per event", "median", "low", "high");
	struct weir_graph *g = make_graph();
	for (int k = 0; k < KINDS; k++) {
		struct bench_stat s = bench_measure(measure, &k);
		printf("%-20s %9.1f %9.1f %9.1f%s\n", rows[k].name, s.median, s.low, s.high,
		    s.far ? " (cores far)" : "");
	}
	weir_thread_detach();
	weir_graph_drain(g, 1000000000, NULL);
	weir_graph_free(g);
	return 0;
}
