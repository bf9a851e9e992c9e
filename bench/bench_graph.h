/* SPDX-License-Identifier: MIT */
/* Graphs of the benches. A graph that cannot be built or loses events ends the program with 1. */
#ifndef WEIR_BENCH_GRAPH_H
#define WEIR_BENCH_GRAPH_H

#include <weir/graph.h>

/** Build the graph, start it, and attach the calling thread. Takes over `spec`. */
struct weir_graph *bench_graph_start(struct weir_spec *spec);

/** Detach the calling thread, drain the graph and free it. */
void bench_graph_end(struct weir_graph *g);

#endif
