/* SPDX-License-Identifier: MIT */
/*
 * Changes to a running graph: set live knobs, pause and drain stages, undo changes, set the
 * overload mode. Functions that change the graph may be called by any thread except the graph's
 * own; a lock lets one of them run at a time. The others are for any thread.
 */
#ifndef WEIR_OPERATE_H
#define WEIR_OPERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/spec.h>

WEIR_C_BEGIN

struct weir_graph;

/** Size of a buffer for a knob's value as text, with its NUL; longer values are truncated. */
#define WEIR_VALUE_MAX 4096

/**
 * Set the live knob `knob` ("threads.max", "admission.rate", "with.body") of `stage` to `value`,
 * permanently. Same as weir_graph_set_for with `for_ns` 0. Returns 0, WEIR_ENOENT (no such stage or
 * knob), WEIR_EINVAL (bad value, or the knob is not live), WEIR_EBUSY (another graph is replacing
 * or has replaced this one) or WEIR_ENOMEM; why[size] receives the message, for a bad value the
 * same that `check` would print. The change is journalled, appears in weir_graph_changes, and takes
 * effect with the next batch at the latest.
 */
WEIR_API int weir_graph_set(struct weir_graph *graph, const char *stage, const char *knob,
    const char *value, char *why, size_t size);

/**
 * Set a knob as weir_graph_set does, but only for `for_ns`, at most WEIR_FOR_MAX_NS; 0 is
 * permanent. When a temporary value expires, the control thread restores the permanent override if
 * one exists, otherwise the configured value, up to 0.1 s late. A permanent value replaces a
 * temporary one.
 */
WEIR_API int weir_graph_set_for(struct weir_graph *graph, const char *stage, const char *knob,
    const char *value, int64_t for_ns, char *why, size_t size);

/** Longest temporary override: 31 days. */
#define WEIR_FOR_MAX_NS (31LL * 24 * 3600 * 1000000000)

/** Remove the override of a knob, which returns to its configured value. Returns the codes of
 *  weir_graph_set, and also WEIR_EBUSY if the knob is not overridden. */
WEIR_API int weir_graph_unset(
    struct weir_graph *graph, const char *stage, const char *knob, char *why, size_t size);

/** The values of a knob. The override takes precedence over the configured value. */
struct weir_override {
	bool overridden;
	int64_t expires_wall_ns; /* CLOCK_REALTIME; 0 if the value is permanent or not overridden */
	char configured[WEIR_VALUE_MAX];
	char override[WEIR_VALUE_MAX]; /* "" if not overridden */
	bool has_permanent;            /* a permanent override exists beneath the temporary one */
	char permanent[WEIR_VALUE_MAX];
	/* no value can be set: the knob is not live, or has no effect on a stage or group of this
	 * kind */
	bool fixed;
	/* the temporary value has expired, but a value that was set meanwhile forbids the one that it
	 * returns to */
	bool stuck;
};

/** Read the values of a knob. Returns 0 or WEIR_ENOENT. Any thread. */
WEIR_API int weir_graph_override(
    const struct weir_graph *graph, const char *stage, const char *knob, struct weir_override *out);

enum weir_steer {
	WEIR_STEER_RUN, /* run normally */
	/* Handlers take no more batches; admission continues, and the queue keeps its events. A
	 * paused source accepts no connections and reads no requests. */
	WEIR_STEER_PAUSE,
	/* Admission refuses (WEIR_EDRAINING) while handlers empty the queue. The stage stays empty
	 * until it is set to run again. Not for sources. */
	WEIR_STEER_DRAIN,
};

/**
 * Pause, drain or resume a stage. Does nothing if the stage is already in that state. Returns 0,
 * WEIR_ENOENT, WEIR_EINVAL (an inline stage without a width, or a source that cannot do this) or
 * WEIR_EBUSY (the graph is not running or is stopping, which resumes all stages, or another graph
 * is replacing or has replaced it); why[size] receives the message. The change appears in
 * weir_graph_changes. Batches in progress finish as usual.
 */
WEIR_API int weir_graph_steer(
    struct weir_graph *graph, const char *stage, enum weir_steer how, char *why, size_t size);

/**
 * Remove what the stages of the graph have stored and `what` names (weir_purges): for http.cache a URL, a URL with
 * '*' at its end, "tag:NAME", or "*". Returns the number of things removed, WEIR_EINVAL, WEIR_ENOENT (no stage
 * stores anything) or WEIR_EBUSY (the graph is not running); why[size] receives the message. Any thread; holds
 * the lock of the graph meanwhile.
 */
WEIR_API int64_t weir_graph_purge(
    struct weir_graph *graph, const char *what, char *why, size_t size);

/** A change by an operator, a reload or a drain, or the expiry of a temporary value. */
struct weir_change {
	uint64_t id; /* number of the change, from 1 */
	int64_t at_ns, wall_ns;
	/* name from weir_graph_change_as; "expiry" if a temporary value expired, "drain" if a drain
	 * resumed a stage */
	char actor[24];
	/* "set", "unset", "pause", "resume", "drain", "overload", "undo", "reload", "expire",
	 * "expire failed" */
	char what[16];
	char target[192];        /* the knob, stage or mode: "work.threads.max", "work" ... */
	char from[96], to[96];   /* values, truncated with "..." */
	int64_t expires_wall_ns; /* when a temporary value expires, else 0 */
	bool undone;             /* undone by weir_graph_undo, or expired */
};

/** Undo the newest change that is not undone yet and is not itself an undo; *undone (may be NULL)
 *  receives it. Returns 0, or WEIR_ENOENT if no such change exists. After WEIR_EBUSY or WEIR_ENOMEM
 *  the caller may try again. Any other code means that the graph refused the reverse change: the
 *  change can no longer be undone, and the next call undoes the one before it. why[size] receives
 *  the message. */
WEIR_API int weir_graph_undo(
    struct weir_graph *graph, struct weir_change *undone, char *why, size_t size);

/** Set the name, at most 23 bytes, under which changes that the calling thread makes to any graph
 *  are recorded. If it is NULL, which is the initial state, the name is "operator", or "reload" for
 *  changes by a reload. The journal always has "operator" or "reload" instead of `name`. Does not
 *  block. */
WEIR_API void weir_graph_change_as(const char *name);

/** Copy the newest `n` changes into `out`, newest first, and return their number. The graph stores
 *  the last 256 changes. Any thread. */
WEIR_API int weir_graph_changes(const struct weir_graph *graph, struct weir_change *out, int n);

/** An event in a queue, without its content. */
struct weir_queued {
	int64_t age_ns; /* time since it was queued */
	/* time to its deadline; negative after the deadline, INT64_MAX if there is none */
	int64_t left_ns;
	int class_id;
	const char *class_name, *type; /* live as long as the graph */
};

/** Describe the oldest `n` events that wait at `stage`, oldest first; `n` is 1..100. Returns their
 *  number, or WEIR_ENOENT. Any thread; holds the queue's lock for a few us. If the stage is in a
 *  core group, the call waits for the cores, at most 20 ms, and leaves out events that wait on a core
 *  that is in a handler for longer. */
WEIR_API int weir_graph_queue(
    const struct weir_graph *graph, const char *stage, struct weir_queued *out, int n);

/**
 * Limit the admission mode of all stages to `mode`. With ENFORCE, each stage uses the mode of its
 * own knob; with SHADOW, no policy refuses events; with OFF, no policy is called. Queue limits and
 * deadlines apply in every mode, and the knobs keep their values. Returns 0, WEIR_EINVAL (no such
 * mode) or WEIR_EBUSY (another graph is replacing or has replaced this one). The change is
 * journalled, and takes effect with the next offer.
 */
WEIR_API int weir_graph_set_overload(struct weir_graph *graph, enum weir_admission_mode mode);

/** The current overload mode, initially `overload: { mode }` of the spec. Any thread. */
WEIR_API enum weir_admission_mode weir_graph_overload(const struct weir_graph *graph);

/** Print the effective value of a knob into buf[size]. Returns 0 or WEIR_ENOENT. Any thread. */
WEIR_API int weir_graph_get(
    const struct weir_graph *graph, const char *stage, const char *knob, char *buf, size_t size);

/* Names of version 0.1, accepted until 0.3. */
#define weir_act          weir_change
#define weir_layers       weir_override
#define weir_graph_act_as weir_graph_change_as
#define weir_graph_acts   weir_graph_changes
#define weir_graph_layers weir_graph_override

WEIR_C_END

#endif
