/* SPDX-License-Identifier: MIT */
/* The slowest events of a graph, with the names of its classes and stages. */
#include "flow/graph.h"
#include "flow/trail.h"

int weir_graph_slowest(const struct weir_graph *g, int class_id, struct weir_slow *out, int n)
{
	if (class_id >= g->n_classes)
		return WEIR_ENOENT;
	n = slowest_read(g->slowest, class_id, out, n);
	for (int i = 0; i < n; i++) {
		out[i].class_name = g->classes[out[i].class_id].name;
		for (int k = 0; k < out[i].n_spans; k++)
			out[i].span[k].stage = g->stages[out[i].span[k].stage_id]->name;
	}
	return n;
}
