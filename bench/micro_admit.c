/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of an admission decision. sink_offer() is called with runs of events on a graph
 * that is built but not started, so there is only one thread and no wake-up. Admitted events are
 * removed outside the measured time. Rows compare the same sink with and without a policy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>
#include <weir/stage.h>

#include "bench.h"
#include "graph/graph.h"
#include "stage/sink.h"
#include "stage/stage.h"

#define OFFERS  20000
#define RUN_MAX 64

static void finish(struct weir_event *ev, int status)
{
	(void)ev, (void)status;
}

static const struct weir_event_type event_type = {
    .name = "bench.event", .size = sizeof(struct weir_event), .finish = finish};

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	weir_emit_run(st, 0, ev, n);
}

static void end(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_outlet outlets[] = {{"out", &event_type, false, ""}, {.name = NULL}};
static const struct weir_stage_ops pass_ops = {.abi = WEIR_STAGE_ABI,
    .name = "bench.pass",
    .summary = "passes on",
    .accepts = &event_type,
    .outlets = outlets,
    .handle = handle};
static const struct weir_stage_ops end_ops = {.abi = WEIR_STAGE_ABI,
    .name = "bench.end",
    .summary = "ends",
    .accepts = &event_type,
    .handle = end};

/* A row of the table: sink `a`, whose events go on to sink `b`, and the state that their policies
 * see. */
struct row {
	const char *name;
	const char *policy_a, *policy_b;
	int run;
	int64_t cost_ns; /* cost of an event; a high cost makes a long queue an overload */
	int threads;     /* number of idle threads */
	bool ahead;      /* `a` decides for `b` upstream */
	bool gave;       /* whether refusals are expected; then, whether some events were refused */
};

static struct row *at; /* the row being measured */

static void no_wake(struct sink *s, uint32_t before, uint32_t length, uint64_t parts)
{
	(void)s, (void)before, (void)length, (void)parts;
}

static void look(const struct sink *s, int rank, struct admission_view *v)
{
	(void)s, (void)rank;
	v->threads = 2;
	v->idle = at->threads;
}

static struct weir_graph *build(const struct row *row)
{
	struct weir_spec *spec = weir_spec_new("admit");
	struct weir_stage_spec *a = weir_spec_add_stage(spec, "a", "bench.pass");
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;

	weir_spec_link(a, "out", "b", false);
	weir_spec_text(&a->admission.policy, row->policy_a);
	a->queue.limit = OFFERS;
	struct weir_stage_spec *b = weir_spec_add_stage(spec, "b", "bench.end");
	weir_spec_text(&b->admission.policy, row->policy_b);
	b->queue.limit = OFFERS;
	if (weir_graph_build(spec, &g, &errs) != 0) {
		fprintf(stderr, "%s\n", errs.err[0].text);
		exit(1);
	}
	for (int i = 0; i < 2; i++) {
		struct sink *k = &g->stages[i]->sink;
		k->wake = no_wake;
		k->look = look;
		atomic_store(&k->mean_cost_ns, row->cost_ns);
		atomic_store(&k->cost_ns[0], row->cost_ns);
	}
	return g;
}

/* Make `a` decide upstream on behalf of `b`: publish to `a` the values that a tick would
 * publish. */
static void ask_for_b(struct sink *a, const struct sink *b)
{
	atomic_store(&a->ahead->fronts[0], (uint16_t)(1U << b->front));
	atomic_store(&a->ahead->before[0][b->front], AHEAD_ALL);
	atomic_store(&a->ahead->lead_ns[0][b->front], 1000);
}

static void empty(struct sink *s)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	struct queue_take take = {.n_ranks = 1, .max = WEIR_BATCH_MAX, .sharers = 1};

	while (queue_pop(&s->queue, &take, ev) > 0)
		queue_release(&s->queue, take.part);
}

static double measure(void *arg)
{
	struct row *row = arg;
	struct weir_graph *g = build(row);
	struct sink *a = &g->stages[0]->sink, *b = &g->stages[1]->sink;
	static struct weir_event events[RUN_MAX];
	static struct book book;
	struct weir_event *ev[RUN_MAX];
	int reason[RUN_MAX], refused = 0;
	int64_t spent_ns = 0;

	at = row;
	memset(&book, 0, sizeof(book));
	if (row->ahead)
		ask_for_b(a, b);
	for (int i = 0; i < OFFERS; i++) {
		int64_t now_ns = bench_now_ns();
		for (int k = 0; k < row->run; k++) {
			ev[k] = &events[k];
			ev[k]->state = WEIR_EVENT_IDLE;
			weir_event_init(ev[k], &event_type, now_ns);
			ev[k]->session = (uint32_t)(i * RUN_MAX + k + 1);
		}
		int64_t from_ns = bench_now_ns();
		refused +=
		    row->run - sink_offer(a, ev, row->run, WEIR_NO_STAGE, now_ns, &book, reason);
		spent_ns += bench_now_ns() - from_ns;
		if (!row->gave || queue_length(&a->queue) > 1000)
			empty(a);
	}
	row->gave = refused > 0;
	empty(a);
	weir_graph_free(g);
	return (double)spent_ns / ((double)OFFERS * row->run);
}

static struct row rows[] = {
    {"no policy, runs of 1", "none", "none", 1, 1000, 1, false, false},
    {"no policy, runs of 8", "none", "none", 8, 1000, 1, false, false},
    {"no policy, runs of 64", "none", "none", 64, 1000, 1, false, false},
    {"weir admits, runs of 1", "weir", "none", 1, 1000, 1, false, false},
    {"weir admits, runs of 8", "weir", "none", 8, 1000, 1, false, false},
    {"weir admits, runs of 64", "weir", "none", 64, 1000, 1, false, false},
    {"weir at two doors admits, runs of 1", "weir", "weir", 1, 1000, 1, true, false},
    {"weir at two doors admits, runs of 64", "weir", "weir", 64, 1000, 1, true, false},
    {"weir refuses, runs of 1", "weir", "none", 1, 1000000000, 0, false, true},
    {"weir refuses, runs of 64", "weir", "none", 64, 1000000000, 0, false, true},
    {"threshold admits, runs of 1", "threshold", "none", 1, 1000, 1, false, false},
    {"codel admits, runs of 1", "codel", "none", 1, 1000, 1, false, false},
    {"gradient2 admits, runs of 1", "gradient2", "none", 1, 1000, 1, false, false},
    {"dagor admits, runs of 1", "dagor", "none", 1, 1000, 1, false, false},
};

int main(void)
{
	bench_header("micro_admit");
	bench_pin(0);
	if (weir_stage_register(&pass_ops, NULL) != 0 || weir_stage_register(&end_ops, NULL) != 0)
		return 1;
	printf("\nns per event of sink_offer, including the clock's reads  median       low      "
	       "high\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench_stat s = bench_measure(measure, &rows[i]);
		printf("%-52s %8.1f  %8.1f  %8.1f%s%s\n", rows[i].name, s.median, s.low, s.high,
		    rows[i].gave ? "  refused some" : "", s.far ? "  far" : "");
	}
	return 0;
}
