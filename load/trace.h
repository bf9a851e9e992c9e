/* SPDX-License-Identifier: MIT */
/*
 * Reads measured send times from a file, or takes them from a replayed log.
 *
 * load_trace_read and load_trace_replay replace only trace_ns and n_trace of the plan; on failure,
 * the plan is unchanged. The plan's phases still define the length of the run and the names of its
 * parts.
 */
#ifndef WEIR_LOAD_TRACE_H
#define WEIR_LOAD_TRACE_H

#include <weir/error.h>

#include "load/plan.h"

/** Read a file with one send time per line, counted from the start, ascending: seconds ("0.0125")
 * or with a unit ("12ms"). Empty lines are ignored. Returns 0, or WEIR_EINVAL, WEIR_ESYS or
 * WEIR_ENOMEM with err->text. For a malformed line, err->text names the file and the line. */
int load_trace_read(struct load_plan *plan, const char *file, struct weir_err *err);

/** Use the times of the requests of `cls`, a class filled by mix_add_log, divided by `speed`: 2
 * replays the log in half the time. `speed` must be above 0. Returns 0, WEIR_EINVAL if the times of
 * the requests are missing or not ascending, or WEIR_ENOMEM. */
int load_trace_replay(
    struct load_plan *plan, const struct load_class *cls, double speed, struct weir_err *err);

/** Parse one line of a trace file. Returns 0, or WEIR_EINVAL with a message in err->text. */
int load_trace_time(const char *text, int64_t *at_ns, struct weir_err *err);

#endif
