/* SPDX-License-Identifier: MIT */
/*
 * A running graph: build it from a spec, start, watch, turn knobs, drain, stop.
 *
 *   spec --weir_graph_build--> BUILT --start--> RUNNING --drain--> DRAINED --free-->
 *
 * | call                            | threads                                             |
 * |---------------------------------|-----------------------------------------------------|
 * | build, start, drain, free       | one thread at a time (main)                         |
 * | snapshot, decisions, set, get   | any thread, at any time between build and free      |
 * | acts: set, unset, undo, steer   | any thread but the graph's own; one at a time       |
 * | weir_thread_attach / detach     | any thread, while RUNNING                           |
 */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/metric.h>
#include <weir/spec.h>
#include <weir/stage.h>

struct weir_graph;

/** Check everything that can be checked without acquiring anything: names, types, links, cycles,
 *  `with:` of every stage, ranges, the thread budget. All mistakes go to `errs`. 0 or
 *  WEIR_EINVAL. Main thread. */
WEIR_API int weir_spec_check(const struct weir_spec *spec, struct weir_errs *errs);

/** Check and build; stages are initialised (files opened, ports not yet bound). The graph takes
 *  over `spec` when it succeeds. On failure `errs` says why and nothing stays. */
WEIR_API int weir_graph_build(
    struct weir_spec *spec, struct weir_graph **graph, struct weir_errs *errs);

/** Start pools, the control thread, then sources; listening begins here. On failure everything
 *  started is stopped again and the graph can only be freed. */
WEIR_API int weir_graph_start(struct weir_graph *graph, struct weir_errs *errs);

/**
 * Start `graph` as what follows the running `old`, for a reload. Stages that are in both under the same name and type may
 * take over from each other (weir_predecessor); live knobs that are overridden stay so, with what is left of their time,
 * as do stages that are paused or drained, the overload mode if it was turned, the journal, and acts with their undo. What
 * can not stay is journalled ("dropped") and logged. Then both accept, until the caller drains `old`, which hands its
 * connections over. Acts on `old` are refused (WEIR_EBUSY) from now on. On failure all is as before but that `graph` can
 * only be freed, and `errs` says why. `graph` must be freed after `old`. One call at a time; any thread.
 */
WEIR_API int weir_graph_succeed(
    struct weir_graph *graph, struct weir_graph *old, struct weir_errs *errs);

/**
 * Make the configured values of the running `graph` those of `wanted`, which was built and not started and has the same
 * stages: live knobs, the overload mode and the grace time; others are not looked at. An overridden knob keeps its override, unless that has become its
 * configured value. All or nothing: 0 with *n_turned (may be NULL) knobs turned, each journalled as an act of "reload"; or
 * WEIR_EBUSY with nothing changed, when one can not be turned beside the overrides of others. Any thread.
 */
WEIR_API int weir_graph_configure(
    struct weir_graph *graph, const struct weir_graph *wanted, int *n_turned);

/** Told of a stage that would take something else from outside; both texts are valid during the call. */
typedef void weir_graph_renewed_fn(void *arg, const char *stage, const char *text);

/** Tell what `wanted`, which was built and not started, has read from outside (certificates) that is other than what stages of the
 *  same name and type in the running `graph` have. One reload at a time; any thread. */
WEIR_API void weir_graph_renewed(const struct weir_graph *graph, const struct weir_graph *wanted,
    weir_graph_renewed_fn *tell, void *arg);

/** What a drain did. */
struct weir_drain_report {
	int64_t took_ns;
	uint64_t closed;   /* events that had to be ended as WEIR_ECLOSED */
	int64_t law_error; /* offered - (completed + shed + failed), summed; 0 or a bug */
};

/** Stop sources, let every stage finish its queue upstream first, for at most `grace_ns` in all;
 *  end what remains as WEIR_ECLOSED; stop pools and control. Returns the number closed, capped. */
WEIR_API void weir_graph_drain(
    struct weir_graph *graph, int64_t grace_ns, struct weir_drain_report *report);

/** From now on drain waits no longer. Any thread; async-signal-safe. */
WEIR_API void weir_graph_hurry(struct weir_graph *graph);

/** Free a graph that is drained, never started or failed to start. NULL is allowed. */
WEIR_API void weir_graph_free(struct weir_graph *graph);

WEIR_API const struct weir_spec *weir_graph_spec(const struct weir_graph *graph);

/** Is it running and not draining? For readiness. Any thread. */
WEIR_API bool weir_graph_ready(const struct weir_graph *graph);

/** When the control thread last began a round that it finished, ns, CLOCK_MONOTONIC; 0 before the first. Ten rounds
 *  a second while the graph runs, so an older one says that the thread is stuck. Any thread, takes no lock. */
WEIR_API int64_t weir_graph_tick_ns(const struct weir_graph *graph);

/* ---- threads that are not the graph's own (embedders, tests, benches) ---- */

/** Let the calling thread init, offer, emit and finish events of `graph`. 0 or WEIR_ENOMEM. */
WEIR_API int weir_thread_attach(struct weir_graph *graph, const char *name);
WEIR_API void weir_thread_detach(void);

/**
 * Offer `ev[0..n)`, n >= 1, to stage `to` (from weir_graph_stage) at its door: deadline, admission,
 * queue. The refused stay the caller's and are moved to the front of `ev`, in order; the other
 * slots become NULL. `reason` (may be NULL) is the SHED code of a refusal. Returns how many were
 * taken. Attached threads, and I/O threads between callbacks; not in a handler, which emits. Runs
 * inline stages in the caller's thread. One lock and at most one wake-up per call.
 */
WEIR_API int weir_offer(struct weir_stage *to, struct weir_event **ev, int n, int *reason);

/** Send on what this thread's finishes and emits have collected. Own threads do it by themselves
 *  at the end of each batch; attached threads call it (weir_offer does, too). */
WEIR_API void weir_thread_flush(void);

/** The stage called `name`, NULL when there is none. Any thread. */
WEIR_API struct weir_stage *weir_graph_stage(const struct weir_graph *graph, const char *name);

/* ---- watching ---- */

enum weir_thread_state {
	WEIR_THREAD_BUSY,     /* in a handler */
	WEIR_THREAD_SPINNING, /* looking for work */
	WEIR_THREAD_IDLE,     /* parked */
	WEIR_THREAD_STATES,
};

/** Numbers of one class at one stage, totals since start. */
struct weir_class_view {
	uint64_t offered;   /* at the door */
	uint64_t admitted;  /* taken into the queue (or run inline) */
	uint64_t completed; /* emitted onwards, or finished as WEIR_OK */
	uint64_t failed;
	uint64_t
	    shed[WEIR_SHED_REASONS];    /* by reason, at the door and at the queue's exit; an event
					 * that a door refuses counts as completed at its sender */
	uint64_t shadow_shed;           /* would have been shed if admission were enforced */
	uint64_t refused_ahead;         /* at doors upstream, for the sake of this stage */
	uint64_t queued;                /* now */
	struct weir_hist wait, service; /* seconds in the queue; in the handler, per event */
};

struct weir_link_view {
	const char *outlet;
	const char *to; /* name of the stage, NULL when unlinked */
	const struct weir_event_type *type;
	uint64_t events_total;
	bool loop;
};

struct weir_stage_view {
	const char *name, *use, *summary;
	const char *state;          /* "running", "paused", "draining", "drained" */
	const char *group;          /* pool it runs in: group name, own name, "" inline or source */
	const char *placement;      /* "source", "inline", "pool", "group" */
	const char *mode;           /* "shared", "exclusive", "partitioned" */
	const char *admission;      /* policy name */
	const char *admission_mode; /* "off", "shadow", "enforce" */
	char admission_why[160];    /* what its policy says of itself now; "" for nothing */
	uint64_t admission_nonsense; /* answers of the policy that made no sense, not obeyed */
	int depth;                   /* longest way from a source, for layouts */
	uint64_t queue_length, queue_limit;
	uint64_t in_flight; /* queued + running + held */
	uint64_t held;
	int64_t law_residual; /* offered - ended - in flight as counted at one moment */
	int64_t law_slack;    /* how much of it the moment's length explains; |residual| <= slack */
	int threads[WEIR_THREAD_STATES];
	int threads_now, threads_target, threads_min, threads_max;
	uint64_t thread_failures, thread_deaths;
	uint64_t busy_ns;           /* in handlers, summed over threads */
	uint64_t batches;           /* handle calls */
	uint64_t batch_events;      /* events in them: mean cohort = batch_events / batches */
	uint64_t wakeups;           /* sleepers woken for this stage */
	uint64_t unhandled;         /* left behind by the handler */
	int64_t oldest_wait_ns;     /* age of the oldest queued event, 0 when empty */
	uint64_t stuck;             /* handle calls that ran longer than threads.stuck */
	int64_t longest_running_ns; /* of the handle calls under way, 0 when none */
	int64_t slo_ns;
	double pressure;
	double degradation; /* weir_degradation, 0..1 */
	int n_links;
	struct weir_link_view *links;
	int n_metrics;
	const struct weir_metric *metrics;
	int64_t metric[WEIR_METRICS_MAX];
	struct weir_class_view class_view[WEIR_CLASSES_MAX];
};

/** One decision of a controller (or of a person), as the journal keeps it. */
struct weir_decision {
	uint64_t id;
	int64_t at_ns;    /* CLOCK_MONOTONIC */
	int64_t wall_ns;  /* CLOCK_REALTIME */
	char stage[64];   /* stage or group */
	char actor[24];   /* policy name, "operator", "repair" */
	char action[24];  /* "grow", "shrink", "limit", "set", "batch", "stuck" ... */
	char rule[96];    /* why: "queue 187 over threshold 64" */
	char limit[48];   /* the limit it met, "" none: "wanted 9, max 8" */
	char inputs[160]; /* "queue=187 busy=4 arrivals=912/s" */
	int from, to;     /* threads before and after */
	/** What became of a grow or shrink after so long: "helped", "no effect", "harmed", "undone"; ""
	 *  not yet, or never for other actions. docs/api.md says what they mean. */
	char outcome_5s[12], outcome_30s[12];
};

/** How the collection for an export goes (weir_graph_collect). */
struct weir_collect_state {
	bool on;
	uint64_t waiting; /* events in the queue */
	uint64_t collected,
	    dropped;           /* that were picked: kept, and not kept since the queue was full */
	uint64_t sent, failed; /* what weir_graph_collect_sent was told */
};

struct weir_graph_view {
	const char *name;
	uint64_t serial; /* of the graph in this process: another one after a reload */
	int64_t now_ns, wall_ns, started_ns;
	bool ready, draining;
	int n_classes;
	const char *class_name[WEIR_CLASSES_MAX];
	int n_stages;
	struct weir_stage_view *stages;
	uint64_t decisions_total; /* the id of the newest */
	uint64_t decided_total;   /* the same, but never smaller than in the graph before */
	uint64_t acts_total;
	struct weir_collect_state collect;
};

/** Read everything at one moment. Totals of a stage go on where those of the stage of its name in the graph before (weir_graph_succeed)
 *  stood, and never go back; gauges, the law's numbers and what is in flight are this graph's alone.
 *  Costs about 20 us per stage and thread, of the graphs before that have not been freed, too; take it once per scrape.
 *  0 or WEIR_ENOMEM. Freed by weir_graph_view_free; names live as long as the graph. */
WEIR_API int weir_graph_view(const struct weir_graph *graph, struct weir_graph_view **view);
WEIR_API void weir_graph_view_free(struct weir_graph_view *view);

/** Copy the newest `n` decisions, newest first, into `out`; returns how many. Any thread. */
WEIR_API int weir_graph_decisions(const struct weir_graph *graph, struct weir_decision *out, int n);

/* ---- the slowest ---- */

/** So many of a class are kept of a minute. */
#define WEIR_SLOWEST_MAX 16

/** A stage on the way of an event. */
struct weir_span {
	const char *stage; /* lives as long as the graph */
	int stage_id;
	uint64_t id;                 /* of the span in the trace */
	int64_t at_ns;               /* from the event's arrival until it entered the queue */
	int64_t wait_ns, service_ns; /* in the queue; from there until it was sent on or ended */
};

/** How an event that took long spent its time. */
struct weir_slow {
	uint64_t id; /* of this record, from 1 */
	int class_id;
	const char *class_name; /* as long as the graph */
	int status;             /* WEIR_E code it ended with */
	int64_t wall_ns;        /* CLOCK_REALTIME when it ended */
	int64_t took_ns;        /* from its arrival */
	char what[96];          /* what its type says of it, printable ASCII, maybe cut */
	const char *end; /* the stage that ended or refused it, "" none; as long as the graph */
	int end_id;      /* its number, -1 none */
	struct weir_trace trace; /* which it has at the latest since it is described here */
	int n_hops, n_spans;     /* stages it came through; of them, in order, in span[] */
	struct weir_span span[WEIR_TRAIL_HOPS];
};

/**
 * Copy the `n` slowest events of `class_id` (-1: of all) that ended in this minute or the last one, slowest
 * first, into `out`. Only events whose type is traced (weir/event.h) and that came through a stage. Returns how
 * many, WEIR_ENOENT (no such class) or WEIR_ENOMEM. Any thread.
 */
WEIR_API int weir_graph_slowest(
    const struct weir_graph *graph, int class_id, struct weir_slow *out, int n);

/* ---- looking at events as they end ---- */

/** What a tap lets through: events of a traced type that came through `stage`, or that it refused. */
struct weir_tap {
	const char *stage;
	int class_id;    /* -1: of any class */
	int outcome;     /* enum weir_outcome, -1: any */
	int64_t slow_ns; /* that took at least so long; 0: all */
};

struct weir_tap_state {
	uint64_t next;    /* what to ask for the next time: `after` */
	uint64_t dropped; /* events that fitted and were not kept, since the tap was opened */
};

/**
 * Copy events that ended, oldest first, into `out[n]`: those behind `after`, an earlier state.next, or none when it is 0,
 * which opens the tap unless somebody has. Who reads keeps it open for 3 s; while nobody reads it keeps 256 events and
 * counts the others. Returns how many, WEIR_ENOENT (no such stage or class), WEIR_EBUSY (8 other taps are open),
 * WEIR_ENOMEM. Any thread. While a tap is open each event that ends costs a few ns, each one kept about 1 us.
 */
WEIR_API int weir_graph_tap(const struct weir_graph *graph, const struct weir_tap *want,
    uint64_t after, struct weir_slow *out, int n, struct weir_tap_state *state);

/** Which events an export gets; the others stay unseen. */
struct weir_collect {
	double sample; /* part of the traces that begin here, 0..1 */
	bool slow;     /* and those that come among the slowest of their class */
	bool
	    follow; /* of traces that came from outside those that are sampled there; else by `sample`, too */
};

/** Begin to collect events for an export; at most 2048 wait. 0, WEIR_EBUSY (somebody does) or WEIR_ENOMEM. Any thread. */
WEIR_API int weir_graph_collect(struct weir_graph *graph, const struct weir_collect *want);
WEIR_API void weir_graph_collect_end(struct weir_graph *graph);

/** Take the oldest `n` of the queue into `out`. Returns how many. One thread at a time; does not wait. */
WEIR_API int weir_graph_collected(struct weir_graph *graph, struct weir_slow *out, int n);

/** So many events were sent, and so many could not be: for weir_graph_collect_state and /metrics. Any thread. */
WEIR_API void weir_graph_collect_sent(struct weir_graph *graph, uint64_t sent, uint64_t failed);

/** How it goes. Any thread, takes no lock. */
WEIR_API void weir_graph_collect_state(
    const struct weir_graph *graph, struct weir_collect_state *state);

/* ---- acts of operators ---- */

/** Longest text of a knob's value in the calls below, with its NUL; longer ones are cut. */
#define WEIR_VALUE_MAX 4096

/**
 * Turn the live knob `knob` ("threads.max", "admission.rate", "with.body") of `stage` to `value`:
 * weir_graph_set_for without an end. Same words as `check`. 0, WEIR_ENOENT (no such stage or knob),
 * WEIR_EINVAL (bad value, or not live), WEIR_ENOMEM; the sentence in `why[size]`. Journalled, an act.
 * Any thread; takes effect by the next batch.
 */
WEIR_API int weir_graph_set(struct weir_graph *graph, const char *stage, const char *knob,
    const char *value, char *why, size_t size);

/**
 * The same for `for_ns` (0: for good), after which the control thread goes back to what the knob was
 * before: the value set for good, or the configured one. A value set for good ends one that is not.
 * The turn back is at most 0.1 s late. At most WEIR_FOR_MAX_NS.
 */
WEIR_API int weir_graph_set_for(struct weir_graph *graph, const char *stage, const char *knob,
    const char *value, int64_t for_ns, char *why, size_t size);

/** A month: longer is for good. */
#define WEIR_FOR_MAX_NS (31LL * 24 * 3600 * 1000000000)

/** Back to the configured value. Codes of weir_graph_set, and WEIR_EBUSY when it is not overridden. */
WEIR_API int weir_graph_unset(
    struct weir_graph *graph, const char *stage, const char *knob, char *why, size_t size);

/** The layers of a knob. What is effective is the overriding value, else the configured one. */
struct weir_layers {
	bool overridden;
	int64_t expires_wall_ns; /* CLOCK_REALTIME, 0: for good or not overridden */
	char configured[WEIR_VALUE_MAX];
	char override[WEIR_VALUE_MAX]; /* "" when there is none */
	bool has_kept; /* beneath one that expires there is one that was set for good */
	char kept[WEIR_VALUE_MAX];
};

/** Read them. 0 or WEIR_ENOENT. Any thread. */
WEIR_API int weir_graph_layers(const struct weir_graph *graph, const char *stage, const char *knob,
    struct weir_layers *layers);

enum weir_steer {
	WEIR_STEER_RUN,   /* as it was built */
	WEIR_STEER_PAUSE, /* handlers take no more batches; the door goes on judging, the queue keeps.
			   * A source: nothing new is accepted or read */
	WEIR_STEER_DRAIN, /* the door refuses (WEIR_EDRAINING) while handlers empty the queue; empty it
			   * stays until the stage is told to run. Not for sources */
};

/**
 * Pause, drain or let run the stage; while it does so already nothing happens. 0, WEIR_ENOENT,
 * WEIR_EINVAL (an inline stage, a source that can not), WEIR_EBUSY (the graph does not run, or is
 * stopping: then every stage runs), the sentence in `why[size]`. An act. Batches under way end as
 * usual; batches begun afterwards obey.
 */
WEIR_API int weir_graph_steer(
    struct weir_graph *graph, const char *stage, enum weir_steer how, char *why, size_t size);

/** An operator's act, or the end of a value that was set for a time. */
struct weir_act {
	uint64_t id; /* from 1 */
	int64_t at_ns, wall_ns;
	char actor[24]; /* who did it (weir_graph_act_as); "expiry" for the control thread */
	char what[16];  /* "set", "unset", "pause", "resume", "drain", "overload", "undo", "expire",
		     "reload" */
	char target[192];        /* "work.threads.max", "work", "overload.mode" */
	char from[96], to[96];   /* values, cut with "..." */
	int64_t expires_wall_ns; /* of a set for a time, else 0 */
	bool undone;             /* by an undo, or expired */
};

/** Take back the newest act that is not taken back yet and is no undo itself; *undone (may be NULL) is
 *  that act. 0; WEIR_ENOENT when there is none in the ring, a code of the act's inverse with `why`. */
WEIR_API int weir_graph_undo(
    struct weir_graph *graph, struct weir_act *undone, char *why, size_t size);

/** What the calling thread does to any graph from now on was done by `name`, at most 23 bytes, NULL:
 *  "operator", and "reload" for what a reload does, as at first. Decisions that come of it stay those of the
 *  "operator" and of the "reload". Does not block. */
WEIR_API void weir_graph_act_as(const char *name);

/** Copy the newest `n` acts, newest first, into `out`; returns how many. 256 are kept. Any thread. */
WEIR_API int weir_graph_acts(const struct weir_graph *graph, struct weir_act *out, int n);

/** A waiting event, without its content. */
struct weir_queued {
	int64_t age_ns;  /* since it entered the queue */
	int64_t left_ns; /* to its deadline, negative when that passed, INT64_MAX for none */
	int class_id;
	const char *class_name, *type; /* live as long as the graph */
};

/** Describe the oldest `n`, 1..100, events that wait at `stage`, oldest first. Returns how many, or
 *  WEIR_ENOENT. Any thread; keeps the queue's lock for a few us. */
WEIR_API int weir_graph_queue(
    const struct weir_graph *graph, const char *stage, struct weir_queued *out, int n);

/** No stage's admission does more than `mode` from now on: ENFORCE leaves each as its knob says, with
 *  SHADOW none refuses, with OFF no policy is asked. Bounds of queues and deadlines stay. The knobs
 *  keep their values. 0, WEIR_EINVAL (no such mode) or WEIR_EBUSY (a reload is under way). Journalled. Any thread; offers that begin
 *  afterwards obey. */
WEIR_API int weir_graph_set_overload(struct weir_graph *graph, enum weir_admission_mode mode);

/** That mode: at first `overload: { mode }` of the spec. Any thread. */
WEIR_API enum weir_admission_mode weir_graph_overload(const struct weir_graph *graph);

/** Print the effective value of a knob into `buf[size]`. 0 or WEIR_ENOENT. Any thread. */
WEIR_API int weir_graph_get(
    const struct weir_graph *graph, const char *stage, const char *knob, char *buf, size_t size);

/** Stage and event type that the calling thread is running, for crash reports: async-signal-safe.
 *  false when none. */
WEIR_API bool weir_thread_running(const char **stage, const char **event_type);

#endif
