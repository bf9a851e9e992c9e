/* SPDX-License-Identifier: MIT */
/*
 * Totals go on over a succession: what a graph shows of a stage has what the stage of that name had counted in the graph before.
 *
 *   succeed --> heir shows own + what the old one shows, still counting --old freed--> own + what it last showed
 *
 * While both live each total is a sum of two that only grow; when the old one ends its last sums stay. So no total is ever smaller
 * than it was, whoever looks when. Gauges, and the law of a stage, are the graph's own. Only views know of this: books, meters
 * and policies count what is theirs.
 *
 * | call             | threads                                                              |
 * |------------------|----------------------------------------------------------------------|
 * | inherit_begin    | who calls weir_graph_succeed, before the heir is started             |
 * | inherit_add      | any, while the heir lives                                            |
 * | inherit_end      | who frees the old graph, drained; beside inherit_add of the heir     |
 * | inherit_drop     | who frees the heir, or could not start it                            |
 */
#ifndef WEIR_FLOW_GRAPH_INHERIT_H
#define WEIR_FLOW_GRAPH_INHERIT_H

#include "flow/graph.h"

/** Let `heir`, which nobody views yet, show what `old` has counted. 0 or WEIR_ENOMEM. */
int inherit_begin(struct weir_graph *heir, struct weir_graph *old);

/** Add to the view of `heir` what it has inherited, if anything. A view of the old graph while that lives. 0 or WEIR_ENOMEM. */
int inherit_add(struct weir_graph *heir, struct weir_graph_view *view);

/** `old` is about to be freed: keep its last sums for its heir, if it has one. Without memory they are lost, with a line in the
 *  log. */
void inherit_end(struct weir_graph *old);

/** `heir` shows its own from now on, and nobody views it meanwhile. */
void inherit_drop(struct weir_graph *heir);

#endif
