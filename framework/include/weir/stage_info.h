/* SPDX-License-Identifier: MIT */
/*
 * Functions with which a stage queries its own properties, its graph and its load, and reports a
 * bad setting. For threads of the graph unless stated otherwise.
 *
 * ops->thread_init and ops->thread_fini. weir_thread_state is available in both, and is zeroed
 * before each thread_init. thread_fini may emit, finish or requeue the events that the thread
 * holds. thread_init returns 0 or a WEIR_E code. If it fails while the graph starts, the start
 * fails. If it fails in a new thread of a running graph, the pool tries again later with another
 * thread. If it fails in a thread that runs a drain or replaces a dead I/O thread, that thread
 * continues without the stage, and calls thread_init again when events for the stage arrive.
 *
 * The framework registers every thread of the graph (handler, I/O, attached) with liburcu-memb: a
 * stage may use urcu_memb_read_lock() right away and must not register threads itself.
 */
#ifndef WEIR_STAGE_INFO_H
#define WEIR_STAGE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/event.h>

WEIR_C_BEGIN

struct weir_stage;
struct weir_stage_ops;

/** Index of the outlet called `name`, or -1 if the stage has none. For use in ops->init. */
WEIR_API int weir_outlet_find(const struct weir_stage *st, const char *name);

/** Name of the outlet with this index, or NULL after the last one. Constant after the build. */
WEIR_API const char *weir_outlet_name(const struct weir_stage *st, int outlet);

/** Whether `outlet` is linked to a stage. Constant after the build. */
WEIR_API bool weir_outlet_linked(const struct weir_stage *st, int outlet);

/**
 * Set the position of the error that ops->init or ops->start is about to return: it will point to
 * the value at `path` below `with:` instead of to the stage. A path is, for example, "tls.cert" or
 * "tls.certs.1.key" (list entries count from 1). If the configuration has no such value, the error
 * points to the longest part of the path that exists. Returns whether the whole path exists. Main
 * thread.
 */
WEIR_API bool weir_blame(struct weir_stage *st, const char *path);

/**
 * Log a warning, formatted as by printf and at most 299 bytes long, that points to the value at
 * `path` (see weir_blame). Use it for a setting that is valid but has less effect than the user may
 * expect. `weir check` prints the warning. For use in ops->init. Main thread.
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

/** Start time of the current batch in ns, CLOCK_MONOTONIC. Does not read the clock. */
WEIR_API int64_t weir_now_ns(const struct weir_stage *st);

/** Time from the start of the current batch to the deadline of `ev` in ns; INT64_MAX if `ev` has no
 *  deadline. */
WEIR_API int64_t weir_remaining_ns(const struct weir_stage *st, const struct weir_event *ev);

/**
 * Load of the stage, 0 (idle) to 1 (full): the largest of these ratios.
 *
 *   - (queued + held events) / limit of the queue. If the stage has a width, or has ever held an
 *     event, the events in its handlers count as held. In a core group, the larger of this for
 *     the part of the limit that the queue has, and of the same for queue and cells together.
 *   - for each priority: (queued + held events of this and lower priorities) / the part of the
 *     limit that these events may fill (framework/admission/room.h)
 *   - predicted wait of a new event / half the stage's objective
 *
 * The last two are 0 unless the admission policy learns the cost of events. Relaxed reads, any
 * thread.
 */
WEIR_API double weir_pressure(const struct weir_stage *st);

/**
 * How far the stage should reduce its quality to serve more events, from 0 (full quality) to 1
 * (cheapest). The framework changes the value in steps of 0.1, as configured by the stage's
 * `degrade:`; without that section it is always 0. The stage decides how to reduce its quality:
 * fewer results, a smaller picture, an older copy. A relaxed read, any thread. Source: service
 * degradation, Welsh and Culler, "Adaptive Overload Control for Busy Internet Servers", USITS 2003.
 */
WEIR_API double weir_degradation(const struct weir_stage *st);

/** Remove what a stage has stored and `what` names, as text in a form of its own, "*" for all. Returns the number
 *  of things removed, or WEIR_EINVAL with a message in why[size]. Any thread, also one of no graph; may block
 *  briefly. */
typedef int64_t weir_purge_fn(struct weir_stage *st, const char *what, char *why, size_t size);

/** Let operators purge what the stage stores (weir_graph_purge). Called in ops->init. */
WEIR_API void weir_purges(struct weir_stage *st, weir_purge_fn *purge);

WEIR_C_END

#endif
