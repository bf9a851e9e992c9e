/* SPDX-License-Identifier: MIT */
/*
 * The data source of the admin endpoint: pointers to the functions of weir/graph.h. Tests replace
 * them by functions that return constructed snapshots, since a real graph cannot be made to look
 * busy. The functions behave like their namesakes in weir/graph.h; `arg` is passed to each of them.
 */
#ifndef WEIR_ADMIN_GRAPH_SOURCE_H
#define WEIR_ADMIN_GRAPH_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/graph.h>
#include <weir/rows.h>

struct history;
struct bottleneck;
struct alerts;
struct admin_reloading;
struct admin_stopping;

struct admin_source {
	void *arg;
	int (*view)(void *arg, struct weir_graph_view **view);
	void (*view_free)(struct weir_graph_view *view);
	int (*decisions)(void *arg, struct weir_decision *out, int n);
	int (*set)(void *arg, const char *stage, const char *knob, const char *value, char *why,
	    size_t size);
	int (*get)(void *arg, const char *stage, const char *knob, char *buf, size_t size);
	int (*set_overload)(void *arg, enum weir_admission_mode mode);
	enum weir_admission_mode (*overload)(void *arg);
	/* a test source may leave any of the following members NULL */
	int (*set_for)(void *arg, const char *stage, const char *knob, const char *value,
	    int64_t for_ns, char *why, size_t size);
	int (*unset)(void *arg, const char *stage, const char *knob, char *why, size_t size);
	int (*layers)(void *arg, const char *stage, const char *knob, struct weir_override *layers);
	int (*steer)(void *arg, const char *stage, enum weir_steer how, char *why, size_t size);
	int64_t (*purge)(void *arg, const char *what, char *why, size_t size);
	int (*undo)(void *arg, struct weir_change *undone, char *why, size_t size);
	int (*changes)(void *arg, struct weir_change *out, int n);
	/* weir_graph_remember; without it decisions and changes are not stored */
	int (*remember)(void *arg, const struct weir_decision *decision, int n_decisions,
	    const struct weir_change *change, int n_changes);
	int (*queue)(void *arg, const char *stage, struct weir_queued *out, int n);
	int (*rows)(void *arg, const char *stage,
	    void (*begin)(void *to, const struct weir_rows *rows), weir_row_visit visit, void *to);
	int (*profile)(void *arg, struct weir_profile **profile);
	int (*slowest)(void *arg, int class_id, struct weir_slow *out, int n);
	int (*tap)(void *arg, const struct weir_tap *want, uint64_t after, struct weir_slow *out,
	    int n, struct weir_tap_state *state);
	/* Data of the endpoint itself, not of the graph. admin_start and admin_start_source set
	 * `history`, `bottleneck` and `alerts` in their copy of the struct; callers leave them
	 * NULL. */
	const struct history *history;
	const struct bottleneck *bottleneck;
	const struct alerts *alerts;
	/* `admin: { ready: { unless_shed } }`: /readyz answers 503 while the highest class is shed */
	bool unless_shed;
	const char *config;                      /* body of /api/v1/config, JSON; NULL if empty */
	const struct weir_admin_spec *admin;     /* who has access; NULL: every client */
	const struct admin_reloading *reloading; /* NULL if the server cannot reload */
	const struct admin_stopping *stopping;   /* NULL if clients cannot stop the server */
	/* alert rules, read by admin_start; NULL selects the built-in ones */
	const struct weir_alerts_spec *rules;
	const char *history_file; /* if NULL or "", the history is in memory only */
};

/** Return the source that reads `graph`. */
struct admin_source graph_source(struct weir_graph *graph);

#endif
