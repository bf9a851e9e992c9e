/* SPDX-License-Identifier: MIT */
/*
 * Keeps totals continuous across a reload: the totals that a graph shows for a stage include those
 * of the stage of the same name in the previous graph.
 *
 *   succeed --> new graph shows its own + the live totals of the old one
 *           --old one freed--> its own + the final totals of the old one
 *
 * While both graphs exist, each total is the sum of two totals that only grow. When the old graph
 * is freed, its final totals are retained. So no total ever decreases. Gauges and the terms of the
 * conservation law cover the new graph alone. Only views include inherited totals; counters, meters
 * and policies do not.
 *
 * | call               | threads                                                           |
 * |--------------------|-------------------------------------------------------------------|
 * | reload_state_begin | the caller of weir_graph_succeed, before the new graph is started |
 * | reload_state_add   | any thread, while the new graph exists                            |
 * | reload_state_end   | the thread that frees the old graph; may overlap reload_state_add |
 * | reload_state_drop  | the thread that frees the new graph, or failed to start it        |
 */
#ifndef WEIR_GRAPH_RELOAD_STATE_H
#define WEIR_GRAPH_RELOAD_STATE_H

#include "graph/graph.h"

/** Make `successor` include the totals of `old`. No view of `successor` may exist yet. Returns 0 or
 *  WEIR_ENOMEM. */
int reload_state_begin(struct weir_graph *successor, struct weir_graph *old);

/** Add the inherited totals, if any, to a view of `successor`. Takes a view of the old graph if
 *  that graph still exists. Returns 0 or WEIR_ENOMEM. */
int reload_state_add(struct weir_graph *successor, struct weir_graph_view *view);

/** Store the final totals of `old` for its successor, if it has one. Called before `old` is freed.
 *  If out of memory, these totals are lost, which is logged. */
void reload_state_end(struct weir_graph *old);

/** Discard the inherited totals of `successor`. No view may be taken at the same time. */
void reload_state_drop(struct weir_graph *successor);

#endif
