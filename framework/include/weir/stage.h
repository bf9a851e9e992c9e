/* SPDX-License-Identifier: MIT */
/*
 * The interface for stage authors: a stage is an ops table with a handler that works on batches.
 *
 * A stage type is one .c file and one CMake line, `weir_stage(upper upper.c)`. It defines
 *
 *         const struct weir_stage_ops weir_stage_upper = { .abi = WEIR_STAGE_ABI, ... };
 *
 * and needs nothing else: weir finds this symbol in the built-in table, or in `upper.so` with
 * dlsym. To start, copy stages/basic/echo.c; docs/writing-a-stage.md is a tutorial.
 *
 * What the framework promises to `handle(st, ev, n)`:
 *   - n >= 1; ev[0..n) are live events of the accepted type, in queue order, owned by the handler;
 *   - every mandatory outlet is linked, and each linked stage accepts the outlet's event type;
 *   - with `mode: exclusive`, only one call runs at a time; with `partitioned`, the events of one
 *     key are handled in order, one call at a time, by the same thread until the number of
 *     threads changes;
 *   - no lock is held, so the handler may block (declare this with WEIR_STAGE_BLOCKS).
 * In return, the handler must emit, finish or hold each event, so that every slot is NULL when it
 * returns. Any event that it leaves behind is finished as WEIR_EDROPPED and counted as `unhandled`;
 * only the first is logged.
 *
 * The framework registers every thread of the graph (handler, I/O, attached) with liburcu-memb: a
 * stage may use urcu_memb_read_lock() right away and must not register threads itself.
 *
 * The calls below are for threads of the graph (handlers, I/O, attached) unless stated otherwise.
 */
#ifndef WEIR_STAGE_H
#define WEIR_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/knob.h>
#include <weir/metric.h>

/** Version of the stage interface. Incremented when a struct or call that stages use changes its
 *  meaning, and checked when a plug-in is loaded. */
#define WEIR_STAGE_ABI 5

struct weir_stage;

enum weir_stage_flags {
	/* creates events in its own I/O threads; has no queue and no `handle` */
	WEIR_STAGE_SOURCE = 1,
	WEIR_STAGE_SINGLE = 2, /* always `mode: exclusive`, whatever the YAML says */
	/* `handle` may sleep in the kernel: the stage is never inline, and its batches are small */
	WEIR_STAGE_BLOCKS = 4,
	WEIR_STAGE_ANY_OUTLETS = 8, /* the names under `to:` define the outlets (for routers) */
	/* can handle events whose body is still arriving (weir/http.h), or never reads bodies */
	WEIR_STAGE_IN_PARTS = 16,
};

/** As `accepts`, it means that the stage takes events of any type; as the type of an outlet, that
 *  the outlet emits events of the type that the stage receives. */
#define WEIR_ANY_EVENT NULL

struct weir_outlet {
	const char *name;                   /* NULL ends the table */
	const struct weir_event_type *type; /* or WEIR_ANY_EVENT */
	/* may stay unlinked; if false, leaving it unlinked is a build error */
	bool optional;
	const char *help;
};

struct weir_stage_ops {
	uint32_t abi;        /* WEIR_STAGE_ABI */
	unsigned flags;      /* enum weir_stage_flags */
	const char *name;    /* the name that `use:` refers to, such as "file.read" */
	const char *summary; /* one sentence without a full stop */

	const struct weir_event_type *accepts; /* WEIR_ANY_EVENT or a type; unused by sources */
	const struct weir_outlet *outlets;     /* may be NULL; `to: NAME` links the first outlet */
	const struct weir_knob *knobs;         /* rows of `with:`; may be NULL */
	size_t conf_size;                      /* size of the struct that `knobs` describes */
	const struct weir_metric *metrics;     /* at most WEIR_METRICS_MAX rows; may be NULL */
	size_t state_size;        /* zeroed bytes shared by all threads: weir_state() */
	size_t thread_state_size; /* zeroed bytes for each thread: weir_thread_state() */

	/** Check the configuration and acquire the resources of the stage. On failure, fill in
	 *  err->text (and `hint`), release what was acquired, and return a WEIR_E code. Main
	 *  thread. */
	int (*init)(struct weir_stage *st, struct weir_err *err);
	/** For sources: start the source's own threads. All downstream stages are already running.
	 *  Main thread. */
	int (*start)(struct weir_stage *st, struct weir_err *err);
	void (*handle)(struct weir_stage *st, struct weir_event **ev, int n);
	/** For sources: accept nothing new, and return when all work in progress has finished, at
	 *  `until_ns` (CLOCK_MONOTONIC) at the latest. For other stages: emit or finish all held
	 *  events; called when no more events can arrive. May block. Main thread, attached to the
	 *  running graph. */
	void (*stop)(struct weir_stage *st, int64_t until_ns);
	/** Release what init acquired. The handler threads have ended, and no event is in flight. A
	 *  source stops and joins its loops here and not in `stop`, because responses may arrive
	 *  until the last stage has drained. Main thread. */
	void (*fini)(struct weir_stage *st);
	/**
	 * `thread_init` is called before a thread runs this stage for the first time, and
	 * `thread_fini` when it will no longer run it. The thread state is available in both and is
	 * zeroed before each `thread_init`. `thread_fini` may emit, finish or requeue the events
	 * that the thread holds. `thread_init` returns 0 or a WEIR_E code. A failure keeps the
	 * graph from starting; in a running graph, the pool tries again later with another thread.
	 * A thread that runs a drain or replaces a dead I/O thread continues without this stage and
	 * calls `thread_init` again when events for the stage arrive. Both callbacks are optional.
	 */
	int (*thread_init)(struct weir_stage *st);
	void (*thread_fini)(struct weir_stage *st);

	/** Return the key of an event, for cohorts and partitions with `by: stage`. Optional; must
	 *  not block. */
	uint64_t (*key)(struct weir_stage *st, const struct weir_event *ev);
	/** Called when the stage linked to `outlet` has refused ev[0..n), n >= 1, for `reason` (a
	 *  SHED code). This stage owns the events again and should emit them elsewhere or finish
	 *  them; events left in `ev` are finished with `reason`. Optional; without this callback
	 *  all refused events are finished with `reason`. */
	void (*refused)(
	    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason);

	/** Return the mean handler time per event in ns under the configuration `conf` (conf_size
	 *  bytes, knobs bound), or 0 if unknown. Optional; for stages whose configuration
	 *  determines their service time. `check` refuses objectives shorter than this time, and
	 *  `simulate` uses it as the service time. A pure function; any thread, before init. */
	int64_t (*service_ns)(const void *conf);

	/**
	 * For sources: accept and read nothing new while `paused` is set; work in progress
	 * continues. Nothing is lost, because clients wait. Optional: a source without this
	 * callback cannot be paused. Any thread, one call at a time, between start and stop; must
	 * not block. In a graph that replaces another one (weir_graph_succeed), it is also called
	 * once before `start`, so that the source starts paused; the source is resumed when all
	 * stages have started.
	 */
	void (*pause)(struct weir_stage *st, bool paused);

	/**
	 * Called when a reload keeps this stage because nothing but live knobs has changed. Take
	 * over the external data that the init of `wanted` has read, such as a certificate whose
	 * file was replaced. `wanted` is the same stage in a graph that is never started and will
	 * soon be freed, so its fini must still be able to release it. Optional. One call at a
	 * time, between start and stop, while handlers run. May run in any thread, so weir_state is
	 * the only function of this header that it may call.
	 */
	void (*refresh)(struct weir_stage *st, struct weir_stage *wanted);

	/**
	 * Whether the external data that the init of `wanted` has read differs from the data that
	 * this running stage uses. If so, write the difference into text[size], without a full stop
	 * ("certificate example.org until 2027-01-31, was example.org until 2026-12-01"). Reloads
	 * and previews of reloads report this text. If the callback returns false, `text` is
	 * ignored. `wanted` has the same name and type, may have other knobs, and was not started.
	 * Optional; called under the same rules as refresh.
	 */
	bool (*renewed)(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size);
};

/* ---- inside callbacks ---- */

/**
 * Send `*ev` to the stage linked to `outlet` (an index into ops->outlets, or from weir_outlet_find)
 * and set `*ev` to NULL. Emitted events are collected in an outbox and enter the next queue in one
 * operation when the batch ends; refused events are returned through ops->refused. Emitting to an
 * unlinked optional outlet finishes the event: as WEIR_OK if the outlet may end a path (its type is
 * WEIR_ANY_EVENT), otherwise as WEIR_ELINK. Costs about 3 ns.
 */
WEIR_API void weir_emit(struct weir_stage *st, int outlet, struct weir_event **ev);

/** Emit ev[0..n), n >= 0, to one outlet, as weir_emit does. No slot may be NULL. */
WEIR_API void weir_emit_run(struct weir_stage *st, int outlet, struct weir_event **ev, int n);

/** Index of the outlet called `name`, or -1 if the stage has none. For use in ops->init. */
WEIR_API int weir_outlet_find(const struct weir_stage *st, const char *name);

/** Whether `outlet` is linked to a stage. Constant after the build. */
WEIR_API bool weir_outlet_linked(const struct weir_stage *st, int outlet);

/**
 * Find a stage reachable from `outlet`, directly or through other stages, whose ops->accepts is a
 * specific event type and whose ops->flags lack at least one of `flags`. Returns NULL if none
 * exists. Stages that accept any event are not checked, because they cannot read the events.
 * Outlets whose event type differs from that of `outlet` are not followed. For use in ops->init.
 * Main thread; visits every downstream stage once.
 */
WEIR_API const struct weir_stage *weir_behind_without(
    struct weir_stage *st, int outlet, unsigned flags);

/**
 * Hold `*ev` beyond this handler call and set `*ev` to NULL. The event stays in flight in this
 * stage until the stage emits or finishes it, from any thread of the graph. The stage must keep
 * track of its held events (it may link them by `ev->next`) and end all of them when the graph
 * closes (ops->stop). A held event still occupies a slot: a stage, inline or not, can have at most
 * `queue.limit` queued and held events together, and admission refuses more (WEIR_EQUEUE). Once a
 * stage has held an event, events in its handlers count as well, since they may be held next.
 */
WEIR_API void weir_hold(struct weir_stage *st, struct weir_event **ev);

/**
 * Put `*ev`, which is in a handler or held by the stage, back into the queue of the same stage and
 * set `*ev` to NULL; `handle` is then called with it again. The event has already been admitted, so
 * admission is not repeated, a full queue does not refuse it, no deadline or delay drops it before
 * the handler, and it is counted as offered only once. If the graph is closed by force or a handler
 * thread exits unexpectedly, the event may end without another call (as WEIR_ECLOSED on a close).
 * State that belongs to an event should therefore be freed in a callback that runs for every event
 * at its end, such as a tap of weir_http_add_tap. For inline stages, the requeuing thread calls
 * `handle` when its batch ends. Any thread of the graph; costs about 5 ns plus the push into the
 * queue.
 */
WEIR_API void weir_requeue(struct weir_stage *st, struct weir_event **ev);

/** The state of the stage: ops->state_size bytes, aligned to a cache line. */
WEIR_API void *weir_state(const struct weir_stage *st);

/** The calling thread's state at this stage: ops->thread_state_size bytes. Only for threads in
 *  which thread_init has run. */
WEIR_API void *weir_thread_state(const struct weir_stage *st);

/** The configuration with the effective values: ops->conf_size bytes, immutable, valid until the
 *  callback returns. */
WEIR_API const void *weir_conf(const struct weir_stage *st);

/**
 * Make the error that ops->init or ops->start is about to return point to the value at `path` below
 * `with:`, such as "tls.cert" or "tls.certs.1.key" (list entries count from 1), instead of to the
 * stage. If the configuration has no such value, the error points to the longest part of the path
 * that exists. Returns whether the whole path exists. Main thread.
 */
WEIR_API bool weir_blame(struct weir_stage *st, const char *path);

/**
 * Log a warning, formatted as by printf and at most 299 bytes long, that points to the value at
 * `path` (see weir_blame). It is meant for a setting that is valid but has less effect than the
 * user may expect; `weir check` shows it. For use in ops->init. Main thread.
 */
WEIR_API void weir_warn(struct weir_stage *st, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Name of the stage with id `id` (ev->stage) in the graph of `st`, or "" if no such stage
 *  exists. */
WEIR_API const char *weir_stage_peer_name(const struct weir_stage *st, int id);

/** Name of class `class_id` in the graph of `st`, or "" if no such class exists. */
WEIR_API const char *weir_class_name(const struct weir_stage *st, int class_id);

/** Objective of class `class_id` in the graph of `st`, in ns from the arrival of an event to its
 *  end; 500 ms unless configured, WEIR_NO_DEADLINE if no such class exists. Constant after the
 *  build. */
WEIR_API int64_t weir_class_slo_ns(const struct weir_stage *st, int class_id);

/** The type of the stage. Any thread. */
WEIR_API const struct weir_stage_ops *weir_stage_type(const struct weir_stage *st);

/** Name of the stage in the configuration. Any thread; valid for the lifetime of the graph. */
WEIR_API const char *weir_stage_name(const struct weir_stage *st);

/** Start time of the current batch in ns, CLOCK_MONOTONIC. Does not read the clock. */
WEIR_API int64_t weir_now_ns(const struct weir_stage *st);

/** Time from the start of the current batch to the deadline of `ev` in ns; INT64_MAX if `ev` has no
 *  deadline. */
WEIR_API int64_t weir_remaining_ns(const struct weir_stage *st, const struct weir_event *ev);

/** Load of the stage, 0 (idle) to 1 (full): the largest of three ratios. The first is the number of
 *  queued and held events divided by the queue's limit. The other two exist only if the admission
 *  policy learns the cost of events: the number of events of lower classes divided by their share
 *  of the limit, and the predicted wait of a new event divided by half the stage's objective.
 *  Relaxed reads, any thread. */
WEIR_API double weir_pressure(const struct weir_stage *st);

/**
 * How far the stage should reduce its quality to serve more events, from 0 (full quality) to 1
 * (cheapest). The framework changes the value in steps of 0.1, as configured by the stage's
 * `degrade:`; without that section it is always 0. The stage decides how to reduce its quality:
 * fewer results, a smaller picture, an older copy. A relaxed read, any thread. Source: service
 * degradation, Welsh and Culler, "Adaptive Overload Control for Busy Internet Servers", USITS 2003.
 */
WEIR_API double weir_degradation(const struct weir_stage *st);

/** Class of `ev` according to the graph's `classes:`: the first that matches, otherwise the last
 *  one. For sources. */
WEIR_API uint8_t weir_classify(const struct weir_stage *st, const struct weir_event *ev);

/** Size of a shed id as text, with its NUL. */
#define WEIR_SHED_ID_BYTES 14

/**
 * Write the shed id of `ev`, 13 letters and digits that `weir why --shed ID` explains, to `text`.
 * Returns false, with an empty text, if admission did not refuse the event. Called by the owner of
 * the event; allocates nothing.
 */
WEIR_API bool weir_shed_id(const struct weir_event *ev, char text[WEIR_SHED_ID_BYTES]);

/**
 * How long the sender of the refused event `ev` should wait before retrying, in ns; 0 if unknown.
 * If only part of the event's class is admitted, this is the time until the event's user is
 * admitted again, at most 10 s, or 1 s for an event without a user. After most other refusals it is
 * the predicted wait. Called by the owner of the event, in a thread of the graph. Takes no lock;
 * costs about 10 ns.
 */
WEIR_API int64_t weir_retry_after_ns(const struct weir_event *ev);

/** Whether the drain must end immediately (after a second SIGTERM). The ops->stop of a source polls
 *  this while it waits. Any thread. */
WEIR_API bool weir_hurried(const struct weir_stage *st);

/* ---- reloading ---- */

/**
 * The predecessor of this stage: the stage of the same name and type in the running graph that this
 * stage's graph replaces (weir_graph_succeed). For a renamed source it is a source of the same type
 * that matches no other stage. NULL if none exists. The predecessor keeps working until it is
 * stopped and may be freed at any time afterwards, so take over what can be shared (a listening
 * socket, a reference-counted table) and keep no pointer to the predecessor. *unchanged (may be
 * NULL) is set to true if this stage and all stages downstream of it have the same types and links
 * as before and differ at most in live knobs. Valid in ops->start, and in an ops->stop that undoes
 * the start because another stage could not start.
 */
WEIR_API struct weir_stage *weir_predecessor(const struct weir_stage *st, bool *unchanged);

/** The successor of this stage: the running stage of the next graph to which this stage hands over
 *  its connections. NULL if the server is stopping, or if the next graph has no such stage. The
 *  successor outlives this stage. Valid from ops->stop on; any thread. */
WEIR_API struct weir_stage *weir_successor(const struct weir_stage *st);

/* ---- finding stage types ---- */

/** The built-in or loaded type called `name`, or NULL if none exists. Any thread. */
WEIR_API const struct weir_stage_ops *weir_stage_type_find(const char *name);

/** Type number `i`, from 0, in the order of names; NULL past the end. Any thread. */
WEIR_API const struct weir_stage_ops *weir_stage_type_at(int i);

/**
 * Load the plug-in at `path`: copy the file into memory, where it cannot change, dlopen the copy,
 * find `weir_stage_<symbol>`, where symbol is the file's base name up to the first dot, check the
 * ABI, and register the type. A file whose content has been loaded before is not loaded again.
 * Files that other users can write are refused (weir/trust.h). Returns 0, or a WEIR_E code with
 * `err` filled in. One thread at a time, before a build.
 */
WEIR_API int weir_stage_load(const char *path, struct weir_err *err);

/**
 * Load a plug-in that a configuration names, as weir_stage_load does. *id receives a hash of its
 * content, never 0. If `look` is set, no code is loaded: if this content has not been loaded
 * before, the newest loaded plug-in with the same symbol is used instead, or WEIR_ENOENT is
 * returned if none exists.
 */
WEIR_API int weir_stage_plugin(const char *path, bool look, uint64_t *id, struct weir_err *err);

/**
 * Call this before loading the plug-ins of a new configuration. After it, each type name can be
 * reassigned once, to a plug-in other than the one in earlier configurations. Graphs keep the types
 * that they were built with. One thread at a time, like weir_stage_load.
 */
WEIR_API void weir_stage_plugins_begin(void);

/** Undo the assignments since weir_stage_plugins_begin, if the configuration does not take effect:
 *  the type names refer to their former plug-ins again. One thread at a time, like
 *  weir_stage_load. */
WEIR_API void weir_stage_plugins_revert(void);

/** Whether `name` belongs to a plug-in that the configuration has not named since
 *  weir_stage_plugins_begin. One thread at a time, like weir_stage_load. */
WEIR_API bool weir_stage_type_left(const char *name);

/** Register a type of a program that embeds weir. `ops` must never be freed. Returns 0, or a WEIR_E
 *  code with `err` filled in. */
WEIR_API int weir_stage_register(const struct weir_stage_ops *ops, struct weir_err *err);

#endif
