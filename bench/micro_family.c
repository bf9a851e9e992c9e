/* SPDX-License-Identifier: MIT */
/*
 * Measures the search for events that wait with a ticket and whose family has ended
 * (graph/tickets_all.c). The control thread makes one at its next tick after a family has ended, however
 * few members wait, and looks at all tickets of all stages.
 *
 *   no family     none of the waiting events is in a family
 *   one family    all are in one that goes on
 *   each its own  each is in a family of its own, as HTTP requests are, which all go on
 *   three levels  each is in one that is within one that is within one
 *
 * The control thread of the graph searches, too, but at most ten times a second.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/op.h>

#include "bench.h"
#include "graph/graph.h"

#define MOST 100000
#define RUNS 21

struct held {
	struct weir_event ev;
	struct weir_op op;
};

static struct held *events;
static uint64_t tickets[MOST];
static struct weir_family *family[MOST];
static int n_kept;

static void end(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type type = {
    .name = "held", .size = sizeof(struct held), .finish = end, .op = offsetof(struct held, op)};

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		tickets[n_kept++] = weir_hold_until(st, &ev[i], WEIR_NO_DEADLINE);
}

static const struct weir_stage_ops ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "b.wait",
    .summary = "bench",
    .accepts = &type,
    .handle = handle};

static struct weir_graph *make_graph(void)
{
	static const char *const knobs[][2] = {{"queue.limit", "1000000"}, {"slo", "1h"},
	    {"width.policy", "static"}, {"width.max", "1000000"}};
	struct weir_spec *spec = weir_spec_new("bench");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;
	struct weir_err err = {0};
	char why[256] = "";

	weir_stage_register(&ops, &err);
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "wait", "b.wait");
	s->inlined = true;
	weir_spec_text(&s->admission.policy, "none");
	for (int i = 0; i < 4; i++)
		if (weir_stage_spec_set(s, knobs[i][0], knobs[i][1], why, sizeof(why)) != 0) {
			fprintf(stderr, "%s: %s\n", knobs[i][0], why);
			exit(1);
		}
	if (weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "graph: %s\n", errs->err[0].text);
		exit(1);
	}
	free(errs);
	return g;
}

enum { NONE, ONE, OWN, LEVELS };

static struct weir_family *family_for(int i, int kind)
{
	if (kind == NONE)
		return NULL;
	if (kind == ONE && i > 0)
		return family[0];
	struct weir_family *f = weir_family_new(NULL);
	for (int k = 0; kind == LEVELS && k < 2; k++) {
		struct weir_family *inner = weir_family_new(f);
		weir_family_put(f);
		f = inner;
	}
	return family[i] = f;
}

static void fill(struct weir_graph *g, int n, int kind)
{
	n_kept = 0;
	for (int i = 0; i < n; i++) {
		struct weir_event *ev = &events[i].ev;
		weir_event_init(ev, &type, bench_now_ns());
		weir_family_join(family_for(i, kind), ev);
		weir_offer(weir_graph_stage(g, "wait"), &ev, 1, NULL);
	}
	if (n_kept != n) {
		fprintf(stderr, "%d of %d events wait\n", n_kept, n);
		exit(1);
	}
}

static void empty(struct weir_graph *g, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *ev = weir_hold_claim(weir_graph_stage(g, "wait"), tickets[i]);
		weir_event_finish(&ev, WEIR_OK);
		weir_family_put(family[i]);
		family[i] = NULL;
	}
	weir_thread_flush();
}

/* One search, in microseconds. */
static double search(struct weir_graph *g)
{
	struct weir_family *f = weir_family_new(NULL);

	weir_family_end(f);
	weir_family_put(f);
	int64_t start_ns = bench_now_ns();
	graph_families_tick(g);
	return (double)(bench_now_ns() - start_ns) / 1000;
}

static void row(struct weir_graph *g, int n, int kind, const char *what)
{
	double us[RUNS];

	fill(g, n, kind);
	for (int i = 0; i < RUNS; i++)
		us[i] = search(g);
	struct bench_stat s = bench_summary(us, RUNS);
	printf("%-14s %9d %10.1f %10.1f %10.1f %12.2f\n", what, n, s.median, s.low, s.high,
	    n ? s.median * 1000 / n : 0);
	empty(g, n);
}

int main(void)
{
	static const int n[] = {0, 1000, 10000, MOST};

	bench_header("micro_family");
	bench_pin(0);
	events = calloc(MOST, sizeof(*events));
	struct weir_graph *g = make_graph();
	printf("%-14s %9s %10s %10s %10s %12s\n", "us a search", "tickets", "median", "low", "high",
	    "ns a ticket");
	for (int i = 0; i < 4; i++)
		row(g, n[i], NONE, "no family");
	row(g, MOST, ONE, "one family");
	row(g, MOST, OWN, "each its own");
	row(g, MOST, LEVELS, "three levels");
	weir_thread_detach();
	weir_graph_drain(g, 0, NULL);
	weir_graph_free(g);
	free(events);
	return 0;
}
