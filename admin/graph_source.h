/* SPDX-License-Identifier: MIT */
/*
 * Where the admin endpoint gets its numbers: the calls of weir/graph.h behind one struct, so that
 * views, routes and the page can be tried on hand-made snapshots (a graph can not be told to look
 * busy). The functions mean what their namesakes in weir/graph.h mean; `arg` is passed through.
 */
#ifndef WEIR_ADMIN_GRAPH_SOURCE_H
#define WEIR_ADMIN_GRAPH_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/graph.h>

struct admin_source {
	void *arg;
	int (*view)(void *arg, struct weir_graph_view **view);
	void (*view_free)(struct weir_graph_view *view);
	int (*decisions)(void *arg, struct weir_decision *out, int n);
	int (*set)(void *arg, const char *stage, const char *knob, const char *value, char *why,
	    size_t size);
	int (*get)(void *arg, const char *stage, const char *knob, char *buf, size_t size);
	int (*set_overload)(void *arg, enum weir_admission_mode mode);
	enum weir_admission_mode (*overload)(void *arg);
};

/** The source that reads `graph`. */
struct admin_source graph_source(struct weir_graph *graph);

#endif
