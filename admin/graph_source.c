/* SPDX-License-Identifier: MIT */
/* The real source: each function is the call of weir/graph.h with the graph behind `arg`. */
#include "graph_source.h"

static int graph_source_view(void *arg, struct weir_graph_view **view)
{
	return weir_graph_view(arg, view);
}

static int graph_source_decisions(void *arg, struct weir_decision *out, int n)
{
	return weir_graph_decisions(arg, out, n);
}

static int graph_source_set(
    void *arg, const char *stage, const char *knob, const char *value, char *why, size_t size)
{
	return weir_graph_set(arg, stage, knob, value, why, size);
}

static int graph_source_get(void *arg, const char *stage, const char *knob, char *buf, size_t size)
{
	return weir_graph_get(arg, stage, knob, buf, size);
}

static int graph_source_set_overload(void *arg, enum weir_admission_mode mode)
{
	return weir_graph_set_overload(arg, mode);
}

static enum weir_admission_mode graph_source_overload(void *arg)
{
	return weir_graph_overload(arg);
}

struct admin_source graph_source(struct weir_graph *graph)
{
	return (struct admin_source){
	    .arg = graph,
	    .view = graph_source_view,
	    .view_free = weir_graph_view_free,
	    .decisions = graph_source_decisions,
	    .set = graph_source_set,
	    .get = graph_source_get,
	    .set_overload = graph_source_set_overload,
	    .overload = graph_source_overload,
	};
}
