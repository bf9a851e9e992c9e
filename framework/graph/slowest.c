/* SPDX-License-Identifier: MIT */
/* Reads the slowest events of a graph, tapped events and events collected for an export, and fills
 * in the names of classes and stages. */
#include <string.h>

#include "graph/graph.h"
#include "trace/trail.h"
#include "trace/trail_tap.h"

static int name(const struct weir_graph *g, struct weir_slow *out, int n)
{
	for (int i = 0; i < n; i++) {
		out[i].class_name = g->classes[out[i].class_id].name;
		out[i].end = out[i].end_id < 0 ? "" : g->stages[out[i].end_id]->name;
		for (int k = 0; k < out[i].n_spans; k++)
			out[i].span[k].stage = g->stages[out[i].span[k].stage_id]->name;
		for (int k = 0; k < out[i].n_child_spans; k++)
			out[i].child_span[k].stage = g->stages[out[i].child_span[k].stage_id]->name;
	}
	return n;
}

int weir_graph_slowest(const struct weir_graph *g, int class_id, struct weir_slow *out, int n)
{
	if (class_id >= g->n_classes)
		return WEIR_ENOENT;
	return name(g, out, slowest_read(g->slowest, class_id, out, n));
}

int weir_graph_tap(const struct weir_graph *g, const struct weir_tap *want, uint64_t after,
    struct weir_slow *out, int n, struct weir_tap_state *state)
{
	const struct weir_stage *st = weir_graph_stage(g, want->stage);

	*state = (struct weir_tap_state){0};
	if (!st || want->class_id >= g->n_classes)
		return WEIR_ENOENT;
	return name(
	    g, out, taps_read(slowest_taps(g->slowest), st->id, want, after, out, n, state));
}

int weir_graph_collect(struct weir_graph *g, const struct weir_collect *want)
{
	return collect_begin(slowest_taps(g->slowest), want);
}

void weir_graph_collect_end(struct weir_graph *g)
{
	collect_end(slowest_taps(g->slowest));
}

int weir_graph_collected(struct weir_graph *g, struct weir_slow *out, int n)
{
	return name(g, out, collect_read(slowest_taps(g->slowest), out, n));
}

void weir_graph_collect_sent(struct weir_graph *g, uint64_t sent, uint64_t failed)
{
	collect_sent(slowest_taps(g->slowest), sent, failed);
}

void weir_graph_collect_state(const struct weir_graph *g, struct weir_collect_state *state)
{
	collect_state(slowest_taps(g->slowest), state);
}
