/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as JSON: the shapes that docs/api.md describes and the dashboard reads.
 *
 * Base units (seconds, bytes, events), totals since start, no rates: a reader takes two responses
 * and divides by the difference of their `uptime_seconds`. Every call returns a new reference owned
 * by the caller (json_decref), or NULL if out of memory. Pure functions, any thread.
 */
#ifndef WEIR_ADMIN_VIEW_JSON_H
#define WEIR_ADMIN_VIEW_JSON_H

#include <jansson.h>

#include <weir/graph.h>

/** Shape of the graph: names, placement and links. */
json_t *view_json_graph(const struct weir_graph_view *view);

/** All stages with all their numbers. */
json_t *view_json_stages(const struct weir_graph_view *view);

/** The stage `stage` of `view`, with the time of the snapshot. */
json_t *view_json_stage(const struct weir_graph_view *view, const struct weir_stage_view *stage);

/** One decision, as it appears in view_json_decisions. */
json_t *view_json_decision(
    const struct weir_graph_view *view, const struct weir_decision *decision);

/** `n` decisions in the order given, and the total number of decisions made so far. */
json_t *view_json_decisions(
    const struct weir_graph_view *view, const struct weir_decision *decision, int n);

#endif
