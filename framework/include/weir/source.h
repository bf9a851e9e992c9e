/* SPDX-License-Identifier: MIT */
/*
 * For sources: stages that create events in their own I/O threads (weir/io.h), and stages that keep
 * external data over a reload. The calls are for threads of the graph unless stated otherwise.
 *
 * ops->start. Start the source's own threads. All downstream stages are already running. Main
 * thread.
 *
 * ops->stop. Accept nothing new, and return when all work in progress has finished, at `until_ns`
 * (CLOCK_MONOTONIC) at the latest. Responses may arrive until the last stage has drained, so loops
 * are stopped and joined in ops->fini, not here.
 *
 * ops->pause. Accept and read nothing new while `paused` is set; work in progress continues.
 * Nothing is lost, because clients wait. Optional: a source without this callback cannot be paused.
 * Any thread, one call at a time, between start and stop; must not block. In a graph that replaces
 * another one (weir_graph_succeed), the callback is also called once before `start`, so that the
 * source starts paused; the source is resumed when all stages have started.
 *
 * ops->refresh. Called when a reload keeps this stage because nothing but live knobs has
 * changed. Take over the external data that the init of `wanted` has read, such as a
 * certificate whose file was replaced. `wanted` is the same stage in a graph that is never
 * started and will soon be freed, so its fini must still be able to release it. Optional. One
 * call at a time, between start and stop, while handlers run. May run in any thread, so
 * weir_state is the only function of these headers that it may call.
 *
 * ops->renewed. Whether the external data that the init of `wanted` has read differs from the
 * data that this running stage uses. If so, write the difference into text[size], without a
 * full stop ("certificate example.org until 2027-01-31, was example.org until 2026-12-01").
 * Reloads and previews of reloads report this text. If the callback returns false, `text` is
 * ignored. `wanted` has the same name and type, may have other knobs, and was not started.
 * Optional; called under the same rules as refresh.
 *
 * ops->clients. Set all members of `clients`. `/api/v1/stages`, `weir ps` and `weir why` report
 * them. Any thread, also several at once, after start has returned and before fini; must not block
 * for longer than a short lock.
 */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>

WEIR_C_BEGIN

struct weir_stage;

/** The clients of a source whose loops have at most `per_loop` clients each (ops->per_loop). */
struct weir_clients {
	int64_t per_loop; /* 0: no limit; the other members are then 0 */
	int loops;        /* number of loops, each with a thread of its own */
	int full;         /* of these, loops that have `per_loop` clients */
	int idle;         /* of these, loops that have a client without a request */
	int64_t waiting;  /* clients that wait for room, in the kernel or in the source */
};

/** Class of `ev` according to the graph's `classes:`: the first that matches, otherwise the last
 *  one. For sources. */
WEIR_API uint8_t weir_classify(const struct weir_stage *st, const struct weir_event *ev);

/**
 * Record that the client of event `ev`, which source `st` has made, has got the whole answer, `took_ns`
 * after the event arrived. `outcome` says what the client got: DONE, SHED (a refusal) or FAILED. The
 * response times of a source are shown by class and outcome (`weir_request_seconds`). Call it at most
 * once for an event, before its memory is used again. From a loop of the source it takes no lock and
 * costs about 5 ns; from other threads it takes a lock of the graph. It has no effect for a stage that
 * is not a source.
 */
WEIR_API void weir_answered(
    struct weir_stage *st, const struct weir_event *ev, enum weir_outcome outcome, int64_t took_ns);

/** Whether the drain must end immediately (after a second SIGTERM). The ops->stop of a source polls
 *  this while it waits. Any thread. */
WEIR_API bool weir_hurried(const struct weir_stage *st);

/**
 * Find a stage that is reachable from `outlet`, directly or through other stages, and whose
 * ops->flags lack at least one of `flags`. Returns NULL if none exists. Stages that accept any
 * event type are not checked, since they cannot read the events. Outlets whose event type differs
 * from that of `outlet` are not followed. For use in ops->init. Main thread; visits every
 * downstream stage once.
 */
WEIR_API const struct weir_stage *weir_behind_without(
    struct weir_stage *st, int outlet, unsigned flags);

struct weir_stage_ops;

/** Find a stage of the type `type` that is reachable from `outlet`, as weir_behind_without does. */
WEIR_API const struct weir_stage *weir_behind_of(
    struct weir_stage *st, int outlet, const struct weir_stage_ops *type);

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

/**
 * The predecessor of this stage: the stage of the same name and type in the running graph that this
 * stage's graph replaces (weir_graph_succeed). The predecessor of a renamed source is a source of
 * the same type that matches no other stage. NULL if none exists. The predecessor keeps working
 * until it is stopped and may be freed at any time afterwards, so take over what can be shared (a
 * listening socket, a reference-counted table) and keep no pointer to the predecessor. *unchanged
 * (may be NULL) is set to true if this stage and all stages downstream of it have the same types
 * and links as before and differ at most in live knobs. Valid in ops->start, and in an ops->stop
 * that undoes the start because another stage could not start.
 */
WEIR_API struct weir_stage *weir_predecessor(const struct weir_stage *st, bool *unchanged);

/** The successor of this stage: the running stage of the next graph to which this stage hands over
 *  its connections. NULL if the server is stopping, or if the next graph has no such stage. The
 *  successor outlives this stage. Valid from ops->stop on; any thread. */
WEIR_API struct weir_stage *weir_successor(const struct weir_stage *st);

WEIR_C_END

#endif
