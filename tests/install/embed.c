/* SPDX-License-Identifier: MIT */
/*
 * A program that embeds weir: builds a graph by hand, sends events through it, and compares the
 * counters of the graph with the events that came out. Exit code 0 when they agree.
 */
#include <stdatomic.h>
#include <stdio.h>

#include <weir/graph.h>

#define EVENTS 1000

static atomic_int finished;

static void on_finish(struct weir_event *ev, int status)
{
	(void)ev;
	if (status == WEIR_OK)
		atomic_fetch_add(&finished, 1);
}

static const struct weir_event_type ticket_type = {
    .name = "ticket", .size = sizeof(struct weir_event), .finish = on_finish};

static void report(const struct weir_errs *errs)
{
	char text[4096];

	weir_errs_format(errs, text, sizeof(text));
	fputs(text, stderr);
}

/** Offer all of ev[0..EVENTS) one by one; returns how many were refused. */
static int offer_all(struct weir_stage *to, struct weir_event *ev)
{
	int refused = 0;

	for (int i = 0; i < EVENTS; i++) {
		struct weir_event *one = &ev[i];
		weir_event_init(one, &ticket_type, 0);
		if (weir_offer(to, &one, 1, NULL) == 0)
			refused++;
	}
	return refused;
}

static int run(struct weir_graph *graph)
{
	static struct weir_event ev[EVENTS];
	struct weir_drain_report drained;
	struct weir_errs errs = {0};

	if (weir_graph_start(graph, &errs) != 0) {
		report(&errs);
		return 1;
	}
	if (weir_thread_attach(graph, "embedder") != 0)
		return 1;
	int refused = offer_all(weir_graph_stage(graph, "end"), ev);
	weir_thread_detach();
	weir_graph_drain(graph, 60000000000, &drained);
	printf("offered %d, refused %d, finished %d\n", EVENTS, refused, atomic_load(&finished));
	return refused + atomic_load(&finished) == EVENTS && drained.law_error == 0 ? 0 : 1;
}

int main(void)
{
	struct weir_spec *spec = weir_spec_new("embedded");
	struct weir_errs errs = {0};
	struct weir_graph *graph;

	if (!spec || !weir_spec_add_stage(spec, "end", "drop"))
		return 1;
	if (weir_graph_build(spec, &graph, &errs) != 0) {
		report(&errs);
		weir_spec_free(spec);
		return 1;
	}
	int rc = run(graph);
	weir_graph_free(graph);
	return rc;
}
