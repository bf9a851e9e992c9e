/* SPDX-License-Identifier: MIT */
/*
 * Observing single events of a graph when they end: the slowest events, taps, and collection for an
 * export. Any thread, between build and free.
 */
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/event.h>
#include <weir/trace.h>
#include <weir/view.h>

WEIR_C_BEGIN

struct weir_graph;

/* ---- the slowest events ---- */

/** Number of the slowest events that are recorded per class and minute. */
#define WEIR_SLOWEST_MAX 16

/** The time that an event spent at one stage of its path. */
struct weir_span {
	const char *stage; /* lives as long as the graph */
	int stage_id;
	uint64_t id;   /* id of this span in the trace */
	int64_t at_ns; /* time from the event's arrival until it was queued at this stage */
	/* time in the queue; time from there until the event was emitted or ended, or began to wait
	 * for its children; time until all of these had ended */
	int64_t wait_ns, service_ns, await_ns;
	int child; /* in weir_slow.child_span: number of the child, from 0; otherwise 0 */
};

/** Number of children whose spans are recorded: those that ended last. 4 is a choice: the last one
 *  has decided how long the parent took, and the others show whether it was alone. */
#define WEIR_SLOW_CHILDREN 4

/** How an event spent its time on its path through the graph. */
struct weir_slow {
	uint64_t id; /* id of this record, from 1 */
	int class_id;
	const char *class_name; /* lives as long as the graph */
	int status;             /* WEIR_E code with which it ended */
	int64_t wall_ns;        /* CLOCK_REALTIME when it ended */
	int64_t took_ns;        /* from its arrival to its end */
	char what[96];          /* description by its type, printable ASCII, may be truncated */
	/* name of the stage that ended or refused it, "" if none; lives as long as the graph */
	const char *end;
	int end_id;              /* id of that stage, -1 if none */
	struct weir_trace trace; /* the event's trace; begun for this record if there was none */
	/* number of stages that the event passed through; number of entries in span[] */
	int n_hops, n_spans;
	struct weir_span span[WEIR_TRAIL_HOPS];
	int depth; /* generations of parents (weir/op.h); 0: not a child */
	/* Number of children that it awaited last, and their spans, from the child that ended last
	 * to earlier ones; at_ns counts from the arrival of the parent. Only children of traced types
	 * have spans. */
	int n_children, n_child_spans;
	struct weir_span child_span[WEIR_TRAIL_HOPS];
};

/**
 * Copy the `n` slowest events of `class_id` (-1 for all classes) that ended in the current or the
 * previous minute into `out`, slowest first. Only events of traced types (weir/event.h) that passed
 * through a stage are recorded. Returns their number, WEIR_ENOENT (no such class) or WEIR_ENOMEM.
 * Any thread.
 */
WEIR_API int weir_graph_slowest(
    const struct weir_graph *graph, int class_id, struct weir_slow *out, int n);

/* ---- watching events as they end ---- */

/** Filter of a tap. It selects events of traced types that passed through `stage` or were refused
 *  by it. */
struct weir_tap {
	const char *stage;
	int class_id;    /* -1 for any class */
	int outcome;     /* enum weir_outcome, -1 for any */
	int64_t slow_ns; /* only events that took at least this long, in ns */
};

struct weir_tap_state {
	uint64_t next;    /* the value of `after` for the next call */
	uint64_t dropped; /* number of matching events not stored, since the tap was opened */
};

/**
 * Copy events that ended after `after`, oldest first, into `out[n]`. `after` is state.next of the
 * previous call; if it is 0, the call returns no events and opens the tap unless it is already
 * open. Each call keeps the tap open for 3 s. Between calls the tap stores up to 256 events and
 * only counts further ones. Returns the number of events, WEIR_ENOENT (no such stage or class),
 * WEIR_EBUSY (8 other taps are open) or WEIR_ENOMEM. Any thread. While a tap is open, each event
 * that ends costs a few ns, and each event stored about 1 us.
 */
WEIR_API int weir_graph_tap(const struct weir_graph *graph, const struct weir_tap *want,
    uint64_t after, struct weir_slow *out, int n, struct weir_tap_state *state);

/** Selects the events to collect for an export. */
struct weir_collect {
	double sample; /* share of the traces started in this server that is collected, 0..1 */
	bool slow;     /* also collect events that are among the slowest of their class */
	/* whether to collect a trace that started elsewhere if its sampled flag is set; if false,
	 * `sample` applies to such traces, too */
	bool follow;
};

/** Start collecting events for an export. Up to 2048 events are queued for weir_graph_collected.
 *  Returns 0, WEIR_EBUSY (another export is collecting) or WEIR_ENOMEM. Any thread. */
WEIR_API int weir_graph_collect(struct weir_graph *graph, const struct weir_collect *want);
WEIR_API void weir_graph_collect_end(struct weir_graph *graph);

/** Move the oldest `n` collected events to `out` and return their number. One thread at a time;
 *  does not wait for events. */
WEIR_API int weir_graph_collected(struct weir_graph *graph, struct weir_slow *out, int n);

/** Add to the totals of events that the export sent and failed to send. Any thread. */
WEIR_API void weir_graph_collect_sent(struct weir_graph *graph, uint64_t sent, uint64_t failed);

/** Read the state of the collection. Any thread, takes no lock. */
WEIR_API void weir_graph_collect_state(
    const struct weir_graph *graph, struct weir_collect_state *state);

WEIR_C_END

#endif
