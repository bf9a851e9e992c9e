/* SPDX-License-Identifier: MIT */
/*
 * The decisions and changes of an earlier process: a server that stores them gives them to the graph
 * at its start, so that lists of decisions and changes go on where they ended.
 */
#ifndef WEIR_PAST_H
#define WEIR_PAST_H

#include <weir/graph.h>

WEIR_C_BEGIN

/**
 * Put `n_decisions` decisions and `n_changes` changes, oldest first, before those of `graph`. They are
 * numbered from 1, their `at_ns` becomes 0, and none of the changes can be undone. Of more than the
 * graph stores, the newest are kept. Call it before weir_graph_start, once. Returns 0, or WEIR_EBUSY
 * if the graph has decisions or changes already. Does not block.
 */
WEIR_API int weir_graph_remember(struct weir_graph *graph, const struct weir_decision *decision,
    int n_decisions, const struct weir_change *change, int n_changes);

WEIR_C_END

#endif
