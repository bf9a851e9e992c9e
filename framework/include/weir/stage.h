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
 * In return, the handler must emit, finish, hold or requeue each event, so that every slot is NULL
 * when the handler returns. Any event that it leaves behind is finished as WEIR_EDROPPED and
 * counted as `unhandled`; only the first case at a stage is logged.
 *
 * With `mode: replicated` (WEIR_STAGE_REPLICABLE), each core of the group has a replica of the stage:
 * a state of its own. weir_state returns the replica of the calling thread's core, so the callbacks
 * need no lock:
 *   - init and fini are called for each replica, in the main thread, while the group has no threads.
 *     If init fails for one, fini is called for those before it. A group makes the replicas of all
 *     cores that it may ever have before it starts;
 *   - thread_init, handle, refused, stop and thread_fini are called in the thread of the core. A core
 *     that leaves the group keeps its replica, also for a new thread of the core. thread_fini must
 *     emit, finish or requeue what the replica holds, since the core may not come back. If the core
 *     has no thread at the end of a drain, stop is called in the thread of the drain;
 *   - refresh and renewed are called for each replica in turn, in the thread of the reload, while
 *     handlers run, as for every stage;
 *   - key is called in the thread of the sender, where weir_state returns NULL or another replica;
 *   - an event stays on the core that has taken it, even if it is requeued. If the core leaves, or
 *     its cell has no room, events may go to other cores.
 * The configuration is one for all replicas, and weir_count adds to one sum.
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
#include <weir/payload.h>

WEIR_C_BEGIN

/** Version of the stage interface. Incremented when a struct or call that stages use changes its
 *  meaning, and checked when a plug-in is loaded. */
#define WEIR_STAGE_ABI 6

struct weir_stage;

struct weir_clients;

enum weir_stage_flags {
	WEIR_STAGE_SOURCE = 1, /* creates events in its own I/O threads; no queue, no `handle` */
	WEIR_STAGE_SINGLE = 2, /* always `mode: exclusive`, whatever the YAML says */
	/* `handle` may sleep in the kernel, so the stage can join no group of pinned threads, and be
	 * inline only if all its callers are loops with one client each (ops->per_loop) */
	WEIR_STAGE_BLOCKS = 4,
	WEIR_STAGE_ANY_OUTLETS = 8, /* the names under `to:` define the outlets (for routers) */
	/* can handle events whose body is still arriving (weir/http.h), or never reads bodies */
	WEIR_STAGE_IN_PARTS = 16,
	/* holds events while something else works on them (weir/hold.h). The number of events in
	 * work is bounded by `width:`, and their service time lasts until the hold ends. */
	WEIR_STAGE_HOLDS = 32,
	/* has an event loop (weir/io.h) of its own. `handle` runs in the loop's thread, where
	 * weir_loop_here() returns the loop, so the handler may set timers and watch sockets. Their
	 * callbacks run in the same thread, and typically end the holds. The events that `handle`
	 * gets are already held; weir_hold keeps them held. The loop runs until ops->fini. Requires
	 * WEIR_STAGE_HOLDS; thread_init must be NULL and thread_state_size 0. */
	WEIR_STAGE_LOOP = 64,
	/* may have a state per core of a core group, with `mode: replicated`; see file top. Not to
	 * be combined with the flags SOURCE, SINGLE, BLOCKS, HOLDS and LOOP, or with `start`. */
	WEIR_STAGE_REPLICABLE = 128,
	/* a source that may be in a core group: it starts the loops 0 .. weir_loop_cores(st) - 1
	 * (weir/io.h), whose threads are then the cores of the group */
	WEIR_STAGE_HOSTS = 256,
	/* its children may come back to it, and it ends the recursion itself (weir/op.h). Not to be
	 * combined with HOLDS. */
	WEIR_STAGE_RECURSES = 512,
};

/** Value of `accepts` for a stage that takes events of any type. Value of `type` for an outlet that
 *  emits events of the type that its stage receives. */
#define WEIR_ANY_EVENT NULL

struct weir_outlet {
	const char *name;                   /* NULL ends the table */
	const struct weir_event_type *type; /* or WEIR_ANY_EVENT */
	/* if false, an outlet that is missing under `to:` is an error */
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
	/** For sources: start the threads of the source (source.h). Main thread. */
	int (*start)(struct weir_stage *st, struct weir_err *err);
	void (*handle)(struct weir_stage *st, struct weir_event **ev, int n);
	/** Emit or finish all held events; called when the sources have stopped and nothing is in
	 *  flight but events that are held, or await held ones. Called again while the stage holds
	 *  events, since some of those may come back to it. May block. Main thread, attached to the
	 *  running graph. Sources: see source.h. */
	void (*stop)(struct weir_stage *st, int64_t until_ns);
	/** Release what init acquired. The handler threads have ended, and no event is in flight.
	 *  Main thread. */
	void (*fini)(struct weir_stage *st);
	/** thread_init is called before a thread runs this stage for the first time, thread_fini
	 *  when the thread will not run it any more. Optional; details in stage_info.h. */
	int (*thread_init)(struct weir_stage *st);
	void (*thread_fini)(struct weir_stage *st);

	/** Return the key of an event, for cohorts (`cohort: { by: stage }`) and partitions (`key:
	 *  stage`). Optional; must not block. */
	uint64_t (*key)(struct weir_stage *st, const struct weir_event *ev);
	/** Called when the stage linked to `outlet` has refused ev[0..n), n >= 1, for `reason` (a
	 *  SHED code). This stage owns the events again and should emit them elsewhere or finish
	 *  them; events left in `ev` are finished with `reason`. Optional; without this callback
	 *  all refused events are finished with `reason`, and so is always what a stage other than
	 *  a source has made, such as children. */
	void (*refused)(
	    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason);
	/** Return the mean handler time per event in ns under the configuration `conf`, a struct of
	 *  conf_size bytes in which all knobs are set, or 0 if unknown. `check` refuses objectives
	 *  shorter than this, and `simulate` uses it as the service time. Optional. A pure
	 *  function; any thread. */
	int64_t (*service_ns)(const void *conf);
	/** For sources: stop or continue accepting (source.h). Optional. */
	void (*pause)(struct weir_stage *st, bool paused);
	/** Take over external data after a reload that keeps this stage (source.h). Optional. */
	void (*refresh)(struct weir_stage *st, struct weir_stage *wanted);
	/** Whether a reload finds new external data (source.h). Optional. */
	bool (*renewed)(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size);
	/** Called with ev[0..n), n >= 1, events whose hold with a ticket (weir_hold_until) has
	 *  expired. The stage emits, finishes or requeues them. Events left in `ev` are finished as
	 *  WEIR_EDEADLINE; so are all expired events if this callback is NULL. The callback runs in
	 *  the threads that call `handle`, or, for an inline stage, in a thread that the stage has
	 *  for this purpose. With `mode: exclusive`, one call runs at a time. A pause does not
	 *  prevent the calls. */
	void (*expired)(struct weir_stage *st, struct weir_event **ev, int n);
	/** For sources: return the maximum number of clients that a loop of the source has at a time
	 *  under the configuration `conf`, or 0 if there is none. With 1, nothing but the events of
	 *  that client waits for the loop's thread, so inline stages behind the source may block.
	 *  Optional. A pure function; any thread. */
	int64_t (*per_loop)(const void *conf);
	/** Bit o is set if the stage awaits the events that it sends to outlets[o] (weir_child); if it
	 *  is not, the first one is logged as an error. Their
	 *  type needs a struct weir_op, and `check` refuses graphs in which they come back to the
	 *  stage. */
	uint32_t children;

	/** Payload types (weir/payload.h), as NULL-terminated tables. All may be NULL. Every event
	 *  that reaches the stage has those in `needs`; weir_spec_check refuses other graphs. An event
	 *  that leaves through an outlet has those of `gives`, since the stage has made them or has
	 *  found them on the event, and has those of `takes` no more. An event that the stage emits
	 *  with the type that it accepts keeps its other payloads; at the outlets in `children` it
	 *  counts as a new event. */
	const struct weir_payload_type *const *needs;
	const struct weir_payload_at *gives, *takes;
	/** For sources with `per_loop`: report which loops are full, and how many clients wait
	 *  (source.h). Optional. */
	void (*clients)(struct weir_stage *st, struct weir_clients *clients);
};

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

/**
 * Whether the event that the handler works on has used up its time slice. The handler should then
 * put it back with weir_requeue, so that it goes on in a later call, behind the events that wait
 * now. Only core groups with `gate: { cutoff: T }` have slices, of T; elsewhere the result is false.
 * Only in `handle`, for its own stage; costs a read of the clock.
 *
 * The slice begins with the handler call or, once earlier events of the batch have left (their slots
 * are NULL), when the handler first asks about the next one. So a handler that works on its events
 * one after another asks at the beginning of each and then in steps that are short beside T.
 */
WEIR_API bool weir_slice_over(const struct weir_stage *st);

/** The state of the stage, or of the calling thread's replica of it: ops->state_size bytes, aligned
 *  to a cache line. NULL in threads that have no replica. */
WEIR_API void *weir_state(const struct weir_stage *st);

/** The calling thread's state at this stage: ops->thread_state_size bytes. Only for threads in
 *  which thread_init has run. */
WEIR_API void *weir_thread_state(const struct weir_stage *st);

/** The configuration with the effective values: ops->conf_size bytes, immutable, valid until the
 *  callback returns. */
WEIR_API const void *weir_conf(const struct weir_stage *st);

/** Name of the stage in the configuration. Any thread; valid for the lifetime of the graph. */
WEIR_API const char *weir_stage_name(const struct weir_stage *st);

WEIR_C_END

#include <weir/hold.h>
#include <weir/op.h>
#include <weir/plugin.h>
#include <weir/source.h>
#include <weir/stage_info.h>

#endif
