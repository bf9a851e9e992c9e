/* SPDX-License-Identifier: MIT */
/*
 * The life cycle of a graph: build it from a spec, start, replace, drain and free it. The other
 * calls for embedders are in view.h (statistics), profile.h (statistics by thread), watch.h (single
 * events) and operate.h (changes), which this header includes. A minor version of libweir may add
 * members to structs of these headers and of spec.h, so the soname contains the minor version. The
 * interface for stages has a version of its own, WEIR_STAGE_ABI.
 *
 *   spec --weir_graph_build--> BUILT --start--> RUNNING --drain--> DRAINED --free-->
 *
 * | call                            | threads                                             |
 * |---------------------------------|-----------------------------------------------------|
 * | build, start, drain, free       | one thread at a time (main)                         |
 * | view.h, profile.h, watch.h      | any thread, at any time between build and free      |
 * | operate.h                       | see there                                           |
 * | weir_thread_attach / detach     | any thread, while RUNNING                           |
 */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/spec.h>
#include <weir/stage.h>

WEIR_C_BEGIN

struct weir_graph;

/** Check everything that can be checked without acquiring resources: names, types, links, cycles,
 *  the `with:` of every stage, ranges, the thread budget. Adds all errors to `errs`. Returns 0,
 *  WEIR_EINVAL or WEIR_ENOMEM. Main thread. */
WEIR_API int weir_spec_check(const struct weir_spec *spec, struct weir_errs *errs);

/** Check `spec` and build a graph from it. This initialises the stages: they open files but do not
 *  bind ports yet. On success the graph owns `spec`. On failure `errs` has the reasons, and all
 *  resources have been released. */
WEIR_API int weir_graph_build(
    struct weir_spec *spec, struct weir_graph **graph, struct weir_errs *errs);

/** Start the pools, the control thread and then the sources, which begin to listen. On failure,
 *  everything started so far is stopped, and the graph can only be freed. */
WEIR_API int weir_graph_start(struct weir_graph *graph, struct weir_errs *errs);

/**
 * Start `graph` as the successor of the running `old`, for a reload. Stages with the same name and
 * type in both may take over state from each other (weir_predecessor). `graph` takes over the
 * overrides of live knobs with their remaining time, paused and drained stages, a changed overload
 * mode, the journal, and the list of changes, which can still be undone. Anything that cannot be
 * taken over is journalled ("dropped") and logged.
 *
 * Afterwards both graphs accept connections until the caller drains `old`. The drain hands the
 * connections of `old` over to `graph`. Changes to `old` (weir/operate.h) are refused with
 * WEIR_EBUSY. On failure `old` continues as before, `errs` has the reason, and `graph` can only be
 * freed. `graph` must be freed after `old`. One call at a time; any thread, attached or not.
 */
WEIR_API int weir_graph_succeed(
    struct weir_graph *graph, struct weir_graph *old, struct weir_errs *errs);

/**
 * Set the configured values of the running `graph` to those of `wanted`, a graph that was built but
 * not started and has the same stages. Only live knobs, the overload mode, the times of `drain:`
 * and the memory of `payloads:` are set. An overridden knob keeps its override, unless the override
 * equals the new configured value. Changes all knobs or none; each change is journalled as a change
 * by "reload". Returns 0 and stores the number of changed knobs in *n_turned (may be NULL), or
 * returns WEIR_EBUSY if a value conflicts with overrides of other knobs, or WEIR_ENOMEM. Any thread.
 */
WEIR_API int weir_graph_configure(
    struct weir_graph *graph, const struct weir_graph *wanted, int *n_turned);

/** Callback for a stage whose external inputs have changed; both texts are valid only during the
 *  call. */
typedef void weir_graph_renewed_fn(void *arg, const char *stage, const char *text);

/** Compare the external inputs, such as certificates, of the stages of `wanted`, a graph that was
 *  built and not started, with those of the running `graph`. Stages are matched by name and type.
 *  Call `tell` for each stage whose inputs differ. One reload at a time; any thread. */
WEIR_API void weir_graph_renewed(const struct weir_graph *graph, const struct weir_graph *wanted,
    weir_graph_renewed_fn *tell, void *arg);

/** Callback for an override or a state of a stage that a new graph could not take over; `text` is
 *  valid only during the call. */
typedef void weir_graph_dropped_fn(void *arg, const char *text);

/** Call `tell` for each override or state of a stage that `graph` did not take over from the graph
 *  before it or, after weir_graph_try_overrides, would not take over. Each is told once. */
WEIR_API void weir_graph_dropped(struct weir_graph *graph, weir_graph_dropped_fn *tell, void *arg);

/** Apply the overrides of the `running` graph to `graph`, to find those that `graph` cannot have
 *  (weir_graph_dropped). `graph` has been built, and must be freed without being started. */
WEIR_API void weir_graph_try_overrides(struct weir_graph *graph, struct weir_graph *running);

/** Result of a drain. */
struct weir_drain_report {
	int64_t took_ns;
	uint64_t closed; /* events finished as WEIR_ECLOSED */
	/* offered - (completed + shed + failed) - lost, over all stages; a value other than 0 is a
	 * bug */
	int64_t law_error;
	int left;      /* number of threads that did not return from a handler in time */
	uint64_t lost; /* unfinished events that those threads own */
	/* list of those threads: "stage 'a' (t.a) in thread 'a/0' for 3.2 s with 1 event"; "" if
	 * none */
	char left_text[400];
};

/**
 * Stop the sources, then let every stage empty its queue, upstream stages first, for at most
 * `grace_ns` in all. Then finish the remaining events as WEIR_ECLOSED, and stop the pools and the
 * control thread. A handler call that is still running gets another 2 s. If it does not return, its
 * thread is left behind and reported, and the process should exit soon. `report` may be NULL. The
 * caller may be attached to this graph, to another one, or to none.
 */
WEIR_API void weir_graph_drain(
    struct weir_graph *graph, int64_t grace_ns, struct weir_drain_report *report);

/** End the grace time of a drain in progress, or of one that starts later: the drain no longer
 *  waits for events in flight. Any thread; async-signal-safe. */
WEIR_API void weir_graph_hurry(struct weir_graph *graph);

/** Free a graph that has been drained, was never started, or failed to start. NULL is allowed.
 *  Waits for threads that its drain left behind in handlers, so a program that is about to exit
 *  should not free such a graph. */
WEIR_API void weir_graph_free(struct weir_graph *graph);

WEIR_API const struct weir_spec *weir_graph_spec(const struct weir_graph *graph);

/** Whether the graph runs, all of its sources have been started, and it is not draining. For
 *  readiness probes. Any thread. */
WEIR_API bool weir_graph_ready(const struct weir_graph *graph);

/** Start time of the last round that the control thread has completed, in ns, CLOCK_MONOTONIC; 0
 *  before the first round. The thread makes ten rounds a second, so an old value means that it is
 *  stuck. Any thread, takes no lock. */
WEIR_API int64_t weir_graph_tick_ns(const struct weir_graph *graph);

/**
 * If the longest-running handler call has run for more than ten times `threads: { stuck }` of its
 * stage, return its start time (ns, CLOCK_MONOTONIC) and store the name of the stage in *stage.
 * Otherwise return 0 and store "". *stage lives as long as the graph. The values are updated ten
 * times a second while the graph runs. Any thread, takes no lock.
 */
WEIR_API int64_t weir_graph_hung(const struct weir_graph *graph, const char **stage);

/**
 * Prevent every other graph from replacing `graph`: from now on, weir_graph_succeed fails with
 * WEIR_EBUSY. A weir_graph_succeed in progress in another thread also fails, and stops what it has
 * started. Returns false if `graph` already has a successor, or will have one because it is too
 * late to make a weir_graph_succeed in progress fail; wait for that call to return. Any thread.
 */
WEIR_API bool weir_graph_stay(struct weir_graph *graph);

/* ---- threads that are not the graph's own (embedders, tests, benches) ---- */

/** Let the calling thread initialise, offer, emit and finish events of `graph`. Calls thread_init
 *  of the inline stages, which may run in this thread. Returns 0, WEIR_ENOMEM, or the code of a
 *  thread_init that has failed. */
WEIR_API int weir_thread_attach(struct weir_graph *graph, const char *name);
WEIR_API void weir_thread_detach(void);

/**
 * Offer `ev[0..n)`, n >= 1, to stage `to` (from weir_graph_stage): deadline check, admission,
 * queue. Refused events still belong to the caller and are moved to the front of `ev`, in order;
 * the other slots become NULL. *reason (may be NULL) receives the SHED code of a refusal. Returns
 * the number of events taken. For attached threads, and I/O threads between callbacks; handlers
 * must emit instead. Runs inline stages in the caller's thread. For each WEIR_BATCH_MAX events, the
 * call takes the queue's lock once and causes at most one wake-up (with `mode: partitioned`, one
 * for each thread that gets events).
 */
WEIR_API int weir_offer(struct weir_stage *to, struct weir_event **ev, int n, int *reason);

/** Send the events that this thread's emits and finishes have put into its outboxes. The graph's
 *  own threads do so at the end of each batch. Attached threads must call this function, unless
 *  they call weir_offer next, which also sends these events. */
WEIR_API void weir_thread_flush(void);

/** The stage called `name`, or NULL if none exists. Any thread. */
WEIR_API struct weir_stage *weir_graph_stage(const struct weir_graph *graph, const char *name);

/* ---- crash reports ---- */

/** For crash reports: find the stage whose handler the calling thread is running, and the type of
 *  the events. Returns false if the thread is not in a handler. Async-signal-safe. */
WEIR_API bool weir_thread_running(const char **stage, const char **event_type);

/** For crash reports: write a description such as "GET /index.html" into buf[size]. It describes
 *  the first event of the calling thread's handler call that the handler still owns. Returns false
 *  if no such event exists, or if its type has no `describe`. Async-signal-safe if `describe` is;
 *  may read the memory that caused the crash. */
WEIR_API bool weir_thread_event(char *buf, size_t size);

WEIR_C_END

#include <weir/operate.h>
#include <weir/profile.h>
#include <weir/view.h>
#include <weir/watch.h>

#endif
