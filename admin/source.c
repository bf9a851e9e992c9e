/* SPDX-License-Identifier: MIT */
/* The real source: each function is the call of weir/graph.h with the graph behind `arg`. */
#include "source.h"

static int source_view(void *arg, struct weir_graph_view **view)
{
	return weir_graph_view(arg, view);
}

static int source_decisions(void *arg, struct weir_decision *out, int n)
{
	return weir_graph_decisions(arg, out, n);
}

static int source_set(
    void *arg, const char *stage, const char *knob, const char *value, char *why, size_t size)
{
	return weir_graph_set(arg, stage, knob, value, why, size);
}

static int source_get(void *arg, const char *stage, const char *knob, char *buf, size_t size)
{
	return weir_graph_get(arg, stage, knob, buf, size);
}

struct admin_source admin_source_of(struct weir_graph *graph)
{
	return (struct admin_source){
	    .arg = graph,
	    .view = source_view,
	    .view_free = weir_graph_view_free,
	    .decisions = source_decisions,
	    .set = source_set,
	    .get = source_get,
	};
}
