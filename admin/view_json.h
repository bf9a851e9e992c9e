/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as JSON: the shapes that docs/api.md describes and the dashboard reads.
 *
 * Base units (seconds, bytes, events), totals since start, no rates: a reader takes two answers and
 * divides by the difference of their `uptime_seconds`. Every call returns a new reference that is
 * the caller's (json_decref), or NULL when memory ran out. Pure functions, any thread.
 */
#ifndef WEIR_ADMIN_VIEW_JSON_H
#define WEIR_ADMIN_VIEW_JSON_H

#include <jansson.h>

#include <weir/graph.h>

/** Shape of the graph: names, places and links. */
json_t *view_json_graph(const struct weir_graph_view *view);

/** All stages with all their numbers. */
json_t *view_json_stages(const struct weir_graph_view *view);

/** The stage `stage` of `view`, with the time of the snapshot. */
json_t *view_json_stage(const struct weir_graph_view *view, const struct weir_stage_view *stage);

/** One of them, as below. */
json_t *view_json_decision(
    const struct weir_graph_view *view, const struct weir_decision *decision);

/** `n` decisions in the order given, and how many there ever were. */
json_t *view_json_decisions(
    const struct weir_graph_view *view, const struct weir_decision *decision, int n);

#endif
