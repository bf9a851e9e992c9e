/* SPDX-License-Identifier: MIT */
/* Core groups of a graph: their build, and what the control thread tells them (graph/group.c). */
#ifndef WEIR_GRAPH_GROUP_H
#define WEIR_GRAPH_GROUP_H

#include "graph/graph.h"

struct plan;

/** Make the core group of the `k`-th group of the plan, as a pool of the graph. Main thread, in a
 *  build. Returns 0 or WEIR_ENOMEM. */
int graph_group_new(struct weir_graph *g, const struct plan *plan, int k, struct pool **out);

/** Find a group of the graph's spec by its name, and the pool of a group. NULL if there is none. */
struct weir_group_spec *graph_group_spec(const struct weir_graph *g, const char *name);
struct pool *graph_group_pool(const struct weir_graph *g, const struct weir_group_spec *gs);

/** Make the cores follow the specs of the core group `pool` and of its stages. Under graph->lock, or
 *  in a build. */
void graph_group_renew(struct weir_graph *g, struct pool *pool);

void graph_groups_free(struct weir_graph *g);

/** Add to `v` what the cores of its core group have done at stage `st`; nothing if the stage is in
 *  no core group. Returns 0 or WEIR_ENOMEM. Any thread. */
int graph_group_view(const struct weir_stage *st, int64_t now_ns, struct weir_stage_view *v);

/** Add the core groups to `v`, whose stages are complete. Returns 0 or WEIR_ENOMEM. Any thread. */
int graph_groups_view(const struct weir_graph *g, struct weir_graph_view *v);
void graph_groups_view_free(struct weir_graph_view *v);

/** Measure the stages and renew the orders of all core groups, if it is time. Control thread. */
void graph_groups_tick(struct weir_graph *g, int64_t now_ns);

#endif
