/* SPDX-License-Identifier: MIT */
/* Implements the source that reads a graph: each function calls its namesake in weir/graph.h with
 * `arg` as the graph. */
#include "graph_source.h"

#include <weir/past.h>

static int graph_source_view(void *arg, struct weir_graph_view **view)
{
	return weir_graph_view(arg, view);
}

static int graph_source_remember(void *arg, const struct weir_decision *decision, int n_decisions,
    const struct weir_change *change, int n_changes)
{
	return weir_graph_remember(arg, decision, n_decisions, change, n_changes);
}

static int graph_source_decisions(void *arg, struct weir_decision *out, int n)
{
	return weir_graph_decisions(arg, out, n);
}

static int graph_source_set(
    void *arg, const char *stage, const char *knob, const char *value, char *why, size_t size)
{
	return weir_graph_set(arg, stage, knob, value, why, size);
}

static int graph_source_get(void *arg, const char *stage, const char *knob, char *buf, size_t size)
{
	return weir_graph_get(arg, stage, knob, buf, size);
}

static int graph_source_set_overload(void *arg, enum weir_admission_mode mode)
{
	return weir_graph_set_overload(arg, mode);
}

static enum weir_admission_mode graph_source_overload(void *arg)
{
	return weir_graph_overload(arg);
}

static int graph_source_set_for(void *arg, const char *stage, const char *knob, const char *value,
    int64_t for_ns, char *why, size_t size)
{
	return weir_graph_set_for(arg, stage, knob, value, for_ns, why, size);
}

static int graph_source_unset(
    void *arg, const char *stage, const char *knob, char *why, size_t size)
{
	return weir_graph_unset(arg, stage, knob, why, size);
}

static int graph_source_layers(
    void *arg, const char *stage, const char *knob, struct weir_override *layers)
{
	return weir_graph_override(arg, stage, knob, layers);
}

static int graph_source_steer(
    void *arg, const char *stage, enum weir_steer how, char *why, size_t size)
{
	return weir_graph_steer(arg, stage, how, why, size);
}

static int64_t graph_source_purge(void *arg, const char *what, char *why, size_t size)
{
	return weir_graph_purge(arg, what, why, size);
}

static int graph_source_undo(void *arg, struct weir_change *undone, char *why, size_t size)
{
	return weir_graph_undo(arg, undone, why, size);
}

static int graph_source_changes(void *arg, struct weir_change *out, int n)
{
	return weir_graph_changes(arg, out, n);
}

static int graph_source_rows(void *arg, const char *stage,
    void (*begin)(void *to, const struct weir_rows *rows), weir_row_visit visit, void *to)
{
	return weir_graph_rows(arg, stage, begin, visit, to);
}

static int graph_source_queue(void *arg, const char *stage, struct weir_queued *out, int n)
{
	return weir_graph_queue(arg, stage, out, n);
}

static int graph_source_profile(void *arg, struct weir_profile **profile)
{
	return weir_graph_profile(arg, profile);
}

static int graph_source_slowest(void *arg, int class_id, struct weir_slow *out, int n)
{
	return weir_graph_slowest(arg, class_id, out, n);
}

static int graph_source_tap(void *arg, const struct weir_tap *want, uint64_t after,
    struct weir_slow *out, int n, struct weir_tap_state *state)
{
	return weir_graph_tap(arg, want, after, out, n, state);
}

struct admin_source graph_source(struct weir_graph *graph)
{
	return (struct admin_source){
	    .arg = graph,
	    .view = graph_source_view,
	    .view_free = weir_graph_view_free,
	    .decisions = graph_source_decisions,
	    .remember = graph_source_remember,
	    .set = graph_source_set,
	    .get = graph_source_get,
	    .set_overload = graph_source_set_overload,
	    .overload = graph_source_overload,
	    .set_for = graph_source_set_for,
	    .unset = graph_source_unset,
	    .layers = graph_source_layers,
	    .steer = graph_source_steer,
	    .purge = graph_source_purge,
	    .undo = graph_source_undo,
	    .changes = graph_source_changes,
	    .queue = graph_source_queue,
	    .rows = graph_source_rows,
	    .profile = graph_source_profile,
	    .slowest = graph_source_slowest,
	    .tap = graph_source_tap,
	};
}
