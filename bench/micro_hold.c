/* SPDX-License-Identifier: MIT */
/*
 * Measures what a ticket adds to the cost of a held event. An inline stage with a width holds
 * events in the sender's thread, with and without tickets. When 8, 256 or 1024 events are held, the
 * same thread ends them. With 8 events all slots are those that the thread keeps (graph/tickets.c).
 *
 *   plain    weir_hold, weir_event_finish
 *   ticket   weir_hold_until, weir_hold_claim, weir_event_finish
 *
 * The row "a ticket adds" is the difference of two stages that take turns, so that a change of the
 * clock rate affects both. The deadline of the tickets is an hour away, so none expires.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/graph.h>
#include <weir/hold.h>
#include <weir/stage.h>

#include "bench.h"

#define HELD_MOST 1024
#define TURNS     4000 /* of each stage per round */
#define HOUR_NS   3600000000000LL

static struct weir_event events[HELD_MOST] __attribute__((aligned(64)));
static struct weir_event *kept[HELD_MOST];
static uint64_t tickets[HELD_MOST];
static int n_kept;
static int64_t until_ns;

static void end(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type type = {
    .name = "held", .size = sizeof(struct weir_event), .finish = end};

static void plain_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		kept[n_kept++] = ev[i];
		weir_hold(st, &ev[i]);
	}
}

static void ticket_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		tickets[n_kept++] = weir_hold_until(st, &ev[i], until_ns);
}

static const struct weir_stage_ops ops[] = {
    {.abi = WEIR_STAGE_ABI,
	.flags = WEIR_STAGE_HOLDS,
	.name = "b.plain",
	.summary = "bench",
	.accepts = &type,
	.handle = plain_handle},
    {.abi = WEIR_STAGE_ABI,
	.flags = WEIR_STAGE_HOLDS,
	.name = "b.ticket",
	.summary = "bench",
	.accepts = &type,
	.handle = ticket_handle},
};

static void add(struct weir_spec *spec, const struct weir_stage_ops *o)
{
	char why[256] = "";
	struct weir_err err = {0};

	weir_stage_register(o, &err);
	struct weir_stage_spec *s = weir_spec_add_stage(spec, o->name + 2, o->name);
	s->inlined = true;
	if (weir_stage_spec_set(s, "queue.limit", "4000", why, sizeof(why)) != 0 ||
	    weir_stage_spec_set(s, "slo", "1h", why, sizeof(why)) != 0 ||
	    weir_stage_spec_set(s, "width.policy", "static", why, sizeof(why)) != 0) {
		fprintf(stderr, "%s: %s\n", o->name, why);
		exit(1);
	}
}

static struct weir_graph *make_graph(void)
{
	struct weir_spec *spec = weir_spec_new("bench");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	add(spec, &ops[0]);
	add(spec, &ops[1]);
	if (weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "graph: %s\n", errs->err[0].text);
		exit(1);
	}
	free(errs);
	return g;
}

struct hold {
	struct weir_stage *stage[2]; /* plain, ticket */
	int held;
	int which; /* 0 or 1: of this stage; 2: the difference */
};

/* Hold and end h->held events. Returns the time that it takes. */
static int64_t turn(const struct hold *h, int which)
{
	struct weir_event *run[WEIR_BATCH_MAX];
	int n = h->held < WEIR_BATCH_MAX ? h->held : WEIR_BATCH_MAX;
	int64_t start_ns = bench_now_ns();

	n_kept = 0;
	for (int i = 0; i < h->held; i += n) {
		for (int k = 0; k < n; k++) {
			run[k] = &events[i + k];
			weir_event_init(run[k], &type, start_ns);
		}
		weir_offer(h->stage[which], run, n, NULL);
	}
	if (n_kept != h->held) {
		fprintf(stderr, "%d of %d events are held\n", n_kept, h->held);
		exit(1);
	}
	for (int i = 0; i < h->held; i++) {
		struct weir_event *ev = which ? weir_hold_claim(h->stage[1], tickets[i]) : kept[i];
		weir_event_finish(&ev, WEIR_OK);
	}
	weir_thread_flush();
	return bench_now_ns() - start_ns;
}

/* Return the median over the turns, so that the turns in which another process runs do not
 * matter. */
static double hold_run(void *arg)
{
	static double took_ns[2][TURNS];
	const struct hold *h = arg;
	double median_ns[2] = {0, 0};

	bench_pin(0);
	for (int i = 0; i < TURNS; i++)
		for (int w = 0; w < 2; w++)
			if (h->which == 2 || h->which == w)
				took_ns[w][i] = (double)turn(h, w) / h->held;
	for (int w = 0; w < 2; w++)
		if (h->which == 2 || h->which == w)
			median_ns[w] = bench_summary(took_ns[w], TURNS).median;
	return h->which == 2 ? median_ns[1] - median_ns[0] : median_ns[h->which];
}

static void row(struct hold h, const char *what, const char *aim)
{
	struct bench_stat s = bench_measure(hold_run, &h);
	char name[64];

	snprintf(name, sizeof(name), "%s, %d held", what, h.held);
	printf("%-44s %9.1f %9.1f %9.1f   %-10s%s\n", name, s.median, s.low, s.high, aim,
	    s.far ? " (cores far)" : "");
}

int main(void)
{
	static const int held[] = {8, WEIR_BATCH_MAX, HELD_MOST};

	bench_header("micro_hold");
	printf("%-44s %9s %9s %9s   %s\n", "ns per event", "median", "low", "high", "aim");
	struct weir_graph *g = make_graph();
	until_ns = bench_now_ns() + HOUR_NS;
	for (int i = 0; i < 3; i++) {
		struct hold h = {
		    {weir_graph_stage(g, "plain"), weir_graph_stage(g, "ticket")}, held[i], 0};
		row(h, "plain", "");
		h.which = 1;
		row(h, "ticket", "");
		h.which = 2;
		row(h, "a ticket adds", "<= 30");
	}
	weir_thread_detach();
	struct weir_drain_report r;
	weir_graph_drain(g, 10000000000LL, &r);
	weir_graph_free(g);
	return r.law_error != 0;
}
