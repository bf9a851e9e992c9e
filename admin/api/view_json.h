/* SPDX-License-Identifier: MIT */
/*
 * Converts a snapshot to JSON, in the form that docs/api.md describes and the dashboard reads.
 *
 * Values are in base units (seconds, bytes, events). Counters are totals since the start. To get a
 * rate, a client divides the difference between two responses by the difference of their
 * `uptime_seconds`. Every function returns a new reference owned by the caller (json_decref), or
 * NULL if out of memory. Pure functions; any thread may call them.
 */
#ifndef WEIR_ADMIN_VIEW_JSON_H
#define WEIR_ADMIN_VIEW_JSON_H

#include <jansson.h>

#include <weir/graph.h>

/** Return the structure of the graph: names, placement and links. */
json_t *view_json_graph(const struct weir_graph_view *view);

/** Return all stages with all their numbers. */
json_t *view_json_stages(const struct weir_graph_view *view);

/** Return the stage `stage` of `view`, with the time of the snapshot. */
json_t *view_json_stage(const struct weir_graph_view *view, const struct weir_stage_view *stage);

/** Return the buckets of a histogram that are not empty, as pairs of upper bound and count. */
json_t *view_json_buckets(const struct weir_hist *hist);

/** Return one decision, as it appears in view_json_decisions. */
json_t *view_json_decision(
    const struct weir_graph_view *view, const struct weir_decision *decision);

/** Return `n` decisions in the order given, and the total number of decisions made so far. */
json_t *view_json_decisions(
    const struct weir_graph_view *view, const struct weir_decision *decision, int n);

#endif
