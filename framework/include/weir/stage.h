/* SPDX-License-Identifier: MIT */
/*
 * What a stage author writes: one ops table, and handlers that work on batches.
 *
 * A stage type is one .c file and one CMake line, `weir_stage(upper upper.c)`. It defines
 *
 *         const struct weir_stage_ops weir_stage_upper = { .abi = WEIR_STAGE_ABI, ... };
 *
 * and that symbol is the whole contract: found in the built-in table or by dlsym in `upper.so`.
 * stages/basic/echo.c is the one to copy; docs/writing-a-stage.md is the tour.
 *
 * What the framework promises to `handle(st, ev, n)`:
 *   - n >= 1; ev[0..n) are live events of the accepted type, in queue order, owned by the handler;
 *   - every outlet that is not optional is linked, and to a stage that accepts the type;
 *   - `mode: exclusive` one call at a time; `partitioned` same key, same thread, in order;
 *   - no lock is held: the handler may block (say so with WEIR_STAGE_BLOCKS).
 * What the handler owes: on return every slot is NULL, since each event was emitted, finished or
 * held. A leftover is finished as WEIR_EDROPPED, counted as `unhandled`, logged once.
 *
 * Every thread of the graph (handler, I/O, attached) is registered with liburcu-memb by the
 * framework: a stage may use urcu_memb_read_lock() at once and must not register threads itself.
 *
 * Calls below are for threads of the graph (handlers, I/O, attached) unless they say otherwise.
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

/** Grows when a struct or call that stages use changes its meaning. Compared when a .so loads. */
#define WEIR_STAGE_ABI 4

struct weir_stage;

enum weir_stage_flags {
	WEIR_STAGE_SOURCE = 1, /* makes events; has no queue, no handle; runs its own I/O threads */
	WEIR_STAGE_SINGLE = 2, /* always `mode: exclusive`, whatever the YAML says */
	WEIR_STAGE_BLOCKS =
	    4, /* handle may sleep in the kernel: never inline, batches kept small */
	WEIR_STAGE_ANY_OUTLETS = 8, /* the names under `to:` are the outlets (router) */
	WEIR_STAGE_IN_PARTS =
	    16, /* takes events whose body is still on its way (weir/http.h), or never
				       looks at bodies */
};

/** Type of an outlet or of `accepts`: any event, and the same as comes in. */
#define WEIR_ANY_EVENT NULL

struct weir_outlet {
	const char *name;                   /* NULL ends the table */
	const struct weir_event_type *type; /* WEIR_ANY_EVENT: what the stage was given */
	bool optional;                      /* else an unlinked outlet is an error of the build */
	const char *help;
};

struct weir_stage_ops {
	uint32_t abi;        /* WEIR_STAGE_ABI */
	unsigned flags;      /* enum weir_stage_flags */
	const char *name;    /* as under `use:`, "file.read" */
	const char *summary; /* one sentence, no full stop */

	const struct weir_event_type *accepts; /* WEIR_ANY_EVENT or a type; unused by sources */
	const struct weir_outlet *outlets; /* NULL: none; the first is the default of `to: NAME` */
	const struct weir_knob *knobs;     /* rows of `with:`; NULL: none */
	size_t conf_size;                  /* the struct that `knobs` describes */
	const struct weir_metric *metrics; /* NULL: none; at most WEIR_METRICS_MAX */
	size_t state_size;                 /* zeroed, shared by all threads: weir_state() */
	size_t thread_state_size;          /* zeroed, one per thread: weir_thread_state() */

	/** Check the configuration and acquire what the stage needs. On failure fill `err->text`
	 * (and `hint`), return a WEIR_E code, and leave nothing acquired. Main thread. */
	int (*init)(struct weir_stage *st, struct weir_err *err);
	/** Start own threads (sources). Downstream is running already. Main thread. */
	int (*start)(struct weir_stage *st, struct weir_err *err);
	void (*handle)(struct weir_stage *st, struct weir_event **ev, int n);
	/** Sources: accept nothing new, let what is there end, return when it has or at `until_ns`
	 *  (CLOCK_MONOTONIC) at the latest. Other stages: emit or finish what they hold; called
	 * when nothing can reach them any more. May block. Main thread, attached to the running
	 * graph. */
	void (*stop)(struct weir_stage *st, int64_t until_ns);
	/** Release what init acquired; handler threads have gone and no event is in flight. A
	 * source stops and joins its loops here, not in stop: answers may come until the last stage
	 * has drained. Main thread. */
	void (*fini)(struct weir_stage *st);
	/** A thread will / will no longer run this stage; its thread state is at hand. Optional. */
	int (*thread_init)(struct weir_stage *st);
	void (*thread_fini)(struct weir_stage *st);

	/** Key of an event for cohorts and partitions with `by: stage`. Optional; must not block.
	 */
	uint64_t (*key)(struct weir_stage *st, const struct weir_event *ev);
	/** The next stage behind `outlet` refused ev[0..n), n >= 1, for `reason` (a SHED code):
	 * they are the stage's again. Emit elsewhere or finish each and NULL its slot; leftovers
	 * are finished with `reason`. Optional; without it they are finished with `reason`. */
	void (*refused)(
	    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason);

	/** Mean time in ns that the handler takes of one event when configured by `conf` (conf_size
	 * bytes, knobs bound), 0 when the configuration does not tell. Optional; for stages that are
	 * told how long to take. `check` refuses objectives below it, `simulate` plans with it. Pure;
	 * any thread, before init. */
	int64_t (*service_ns)(const void *conf);

	/** Sources: with `paused` accept and read nothing new until told again without; what has begun
	 * goes on. Optional: a source without it can not be paused. Any thread, one call at a time,
	 * between start and stop; must not block. Nothing is lost by it: clients wait. In a graph that
	 * follows another one (weir_graph_succeed) also once before start: it starts paused, and is let go
	 * when every stage could start. */
	void (*pause)(struct weir_stage *st, bool paused);

	/** The configuration was read again, and this stage goes on, since nothing but live knobs is to change: take over
	 * what `wanted` has read from outside in its init (a certificate, whose file may be a new one). `wanted` is the same
	 * stage in a graph that is never started and freed soon, so leave it what it can give back. Optional. One call at a
	 * time, between start and stop, while handlers run; any thread, so no call of this header but weir_state. */
	void (*refresh)(struct weir_stage *st, struct weir_stage *wanted);

	/** What did `wanted` read from outside in its init that is other than what this running stage has from there? As
	 * words without a full stop into text[size] ("certificate example.org until 2027-01-31, was example.org
	 * until 2026-12-01"), for who reloads or only asks what a reload would do. false: all is the same, and text is not
	 * looked at. `wanted` has the same name and type, perhaps other knobs, and was not started. Optional; as refresh. */
	bool (*renewed)(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size);
};

/* ---- inside callbacks ---- */

/**
 * Give `*ev` to the stage behind `outlet` (index into the ops table or from weir_outlet_find) and
 * store NULL. Emissions collect in an outbox and enter the next queue in one operation when the
 * batch ends; a refusal comes back through ops->refused. Emitting to an unlinked optional outlet
 * finishes the event: as WEIR_OK if it is the last outlet of its way (outlet type any), else as
 * WEIR_ELINK, counted. About 3 ns.
 */
WEIR_API void weir_emit(struct weir_stage *st, int outlet, struct weir_event **ev);

/** The same for ev[0..n), n >= 0, no slot NULL. */
WEIR_API void weir_emit_run(struct weir_stage *st, int outlet, struct weir_event **ev, int n);

/** Index of the outlet called `name`, -1 when the stage has none. For init. */
WEIR_API int weir_outlet_find(const struct weir_stage *st, const char *name);

/** Is `outlet` linked to a stage? Constant after build. */
WEIR_API bool weir_outlet_linked(const struct weir_stage *st, int outlet);

/**
 * The first stage that events of `outlet` may come to, at once or by way of others, whose type names what it accepts and has not all
 * of `flags`; NULL when there is none. Stages that accept any event cannot look into it and pass. Events of another
 * type that a stage on the way makes are not followed. For init. Main thread; every stage behind once.
 */
WEIR_API const struct weir_stage *weir_behind_without(
    struct weir_stage *st, int outlet, unsigned flags);

/**
 * Keep `*ev` beyond this call and store NULL: it stays in flight in this stage until the stage
 * emits or finishes it later, from any thread of the graph. The stage links and frees what it keeps
 * (`ev->next` is its to use) and finishes all of it when the graph closes (ops->stop of the stage).
 */
WEIR_API void weir_hold(struct weir_stage *st, struct weir_event **ev);

/**
 * Put `*ev`, which a handler runs or the stage holds, back into the queue of its own stage and store NULL: `handle` is
 * called with it again. It was let in already, so the door is not asked, the limit of the queue does not hold for it and
 * no deadline or delay drops it before the handler; the books count it once, as one event that was offered. What is
 * under way when the graph is closed by force ends as WEIR_ECLOSED in place of another call, and so may any event end in
 * which a handler thread dies: state that belongs to an event is to be freed by what sees its end (weir_http_add_tap).
 * Inline stages are called by the requeuing thread when its batch ends. Any thread of the graph; about 5 ns and the push.
 */
WEIR_API void weir_requeue(struct weir_stage *st, struct weir_event **ev);

/** The state_size bytes of the stage, aligned to a cache line. */
WEIR_API void *weir_state(const struct weir_stage *st);

/** The thread_state_size bytes of this thread at this stage. Only where thread_init ran. */
WEIR_API void *weir_thread_state(const struct weir_stage *st);

/** The conf_size bytes, effective values, immutable; valid until the callback returns. */
WEIR_API const void *weir_conf(const struct weir_stage *st);

/**
 * In ops->init and ops->start: what it fails for is the value at `path` below `with:`, as "tls.cert" or "tls.certs.1.key" (entries count
 * from 1), so that the error names that place instead of the stage's; where the configuration has no such value, of as much
 * of it as there is. Returns whether the whole of it is there. Main thread.
 */
WEIR_API bool weir_blame(struct weir_stage *st, const char *path);

/**
 * In ops->init: log a warning, `fmt` as printf has it, at most 300 bytes, that names the place of the value at `path`, as weir_blame
 * takes it. For what is no mistake but does less than it seems to; `weir check` shows it. Main thread.
 */
WEIR_API void weir_warn(struct weir_stage *st, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Name of the stage with id `id` (ev->stage) in the graph of `st`, "" when there is none. */
WEIR_API const char *weir_stage_peer_name(const struct weir_stage *st, int id);

/** Name of class `class_id` in the graph of `st`, "" when there is none. */
WEIR_API const char *weir_class_name(const struct weir_stage *st, int class_id);

/** Objective of class `class_id` in the graph of `st`, ns from arrival to the end; 500 ms unless the YAML says
 *  otherwise, WEIR_NO_DEADLINE when there is no such class. Constant after build. */
WEIR_API int64_t weir_class_slo_ns(const struct weir_stage *st, int class_id);

/** The type of the stage. Any thread. */
WEIR_API const struct weir_stage_ops *weir_stage_type(const struct weir_stage *st);

/** Name of the stage in the YAML. Any thread, static for the life of the graph. */
WEIR_API const char *weir_stage_name(const struct weir_stage *st);

/** Time at which this batch started, ns, CLOCK_MONOTONIC: no clock read. */
WEIR_API int64_t weir_now_ns(const struct weir_stage *st);

/** Time to the deadline of `ev` in ns from the start of this batch; INT64_MAX for none. */
WEIR_API int64_t weir_remaining_ns(const struct weir_stage *st, const struct weir_event *ev);

/** How loaded the stage is, 0 (idle) to 1 (full): its queue over the queue's limit or, when its admission policy learns
 *  what events cost, the wait of who enters now over half the stage's objective, whichever is more. Relaxed reads,
 *  any thread. */
WEIR_API double weir_pressure(const struct weir_stage *st);

/**
 * How much worse the stage should serve now so that it can serve more: 0 full quality .. 1 the cheapest it has.
 * Moved by the framework as the stage's `degrade:` says, in steps of 0.1; always 0 without that block. What it
 * means is the stage's to decide: fewer results, a smaller picture, an older copy. A relaxed read, any thread.
 * Source: service degradation, Welsh and Culler, "Adaptive Overload Control for Busy Internet Servers", USITS 2003.
 */
WEIR_API double weir_degradation(const struct weir_stage *st);

/** Class of `ev` by the graph's `classes:` (first match wins, else the last class). Sources. */
WEIR_API uint8_t weir_classify(const struct weir_stage *st, const struct weir_event *ev);

/** Bytes of a shed id as text, with its NUL. */
#define WEIR_SHED_ID_BYTES 14

/**
 * Why `ev` was refused, as 13 letters and digits that `weir why --shed ID` explains, into `text`. false, and an empty text,
 * when no door refused it. The owner of the event; no allocation.
 */
WEIR_API bool weir_shed_id(const struct weir_event *ev, char text[WEIR_SHED_ID_BYTES]);

/**
 * How long whoever sent the refused event `ev` should wait before trying again, in ns; 0 when that is not known. A user
 * of a class that is let in by halves waits for its turn (at most 10 s), others the wait that was predicted for them.
 * The owner of the event, in a thread of the graph; no lock, about 10 ns.
 */
WEIR_API int64_t weir_retry_after_ns(const struct weir_event *ev);

/** Must a drain end at once (second SIGTERM)? ops->stop of sources looks at it while it waits. Any
 *  thread. */
WEIR_API bool weir_hurried(const struct weir_stage *st);

/* ---- reloading ---- */

/**
 * The stage of the same name and type in the running graph that this one follows (weir_graph_succeed), for a source that
 * was renamed one of its type that is left over, NULL when there is none. It goes on working until it is stopped and may be freed at any time afterwards, so take over what can be shared
 * (a listening socket, a counted table) and keep no pointer to it. *unchanged (may be NULL): this stage and all that it
 * leads to are of the same types, linked alike, and differ in live knobs at most. In ops->start, and in ops->stop that undoes it when another stage could not start.
 */
WEIR_API struct weir_stage *weir_predecessor(const struct weir_stage *st, bool *unchanged);

/** The running stage that follows this one, to hand over to what will last longer than this graph: connections. NULL when
 *  the server stops, or has no such stage any more. It outlives this one. From ops->stop on; any thread. */
WEIR_API struct weir_stage *weir_successor(const struct weir_stage *st);

/* ---- finding stage types ---- */

/** The built-in or loaded type called `name`, NULL when there is none. Any thread. */
WEIR_API const struct weir_stage_ops *weir_stage_type_find(const char *name);

/** Type number `i`, from 0, sorted by name; NULL past the end. Any thread. */
WEIR_API const struct weir_stage_ops *weir_stage_type_at(int i);

/** Load a plug-in: dlopen `path`, look for `weir_stage_<symbol>` where symbol is the file's base
 *  name up to the first dot, check the ABI, register. Fills `err`. Main thread, before a build. */
WEIR_API int weir_stage_load(const char *path, struct weir_err *err);

/** Register a type from a program that embeds weir; `ops` must live for ever. */
WEIR_API int weir_stage_register(const struct weir_stage_ops *ops, struct weir_err *err);

#endif
