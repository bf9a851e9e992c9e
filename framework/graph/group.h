/* SPDX-License-Identifier: MIT */
/* Core groups of a graph: their build, and what the control thread tells them (graph/group.c). */
#ifndef WEIR_GRAPH_GROUP_H
#define WEIR_GRAPH_GROUP_H

#include "graph/graph.h"

struct plan;

/** Make the core group of `k`-th group of the plan, as a pool of the graph. Main thread, in a build.
 *  Returns 0 or WEIR_ENOMEM. */
int graph_group_new(struct weir_graph *g, const struct plan *plan, int k, struct pool **out);

void graph_groups_free(struct weir_graph *g);

/** Measure the stages and renew the orders of all core groups, if it is time. Control thread. */
void graph_groups_tick(struct weir_graph *g, int64_t now_ns);

#endif
