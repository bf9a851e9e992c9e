/* SPDX-License-Identifier: MIT */
/*
 * Send times that were measured: from a file, or from the times of a replayed log.
 *
 * Both fill trace_ns and n_trace of the plan, in place of what was there, and nothing else of it;
 * on failure the plan is unchanged. The plan's phases still say how long the run is and what its
 * parts are called.
 */
#ifndef WEIR_LOAD_TRACE_H
#define WEIR_LOAD_TRACE_H

#include <weir/error.h>

#include "load/plan.h"

/** The file's lines, one send time each since the start, ascending: seconds ("0.0125") or with a
 *  unit ("12ms"). Empty lines do not count. 0; WEIR_EINVAL naming file and line, WEIR_ESYS,
 *  WEIR_ENOMEM with err->text. */
int load_trace_read(struct load_plan *plan, const char *file, struct weir_err *err);

/** The times of the requests of `cls` (replayed: at_ns, mix_add_log), `speed` times as fast (2:
 *  half the time; above 0). 0; WEIR_EINVAL when its requests have no times that ascend,
 *  WEIR_ENOMEM. */
int load_trace_replay(
    struct load_plan *plan, const struct load_class *cls, double speed, struct weir_err *err);

/** One line of a trace file. 0, or WEIR_EINVAL with the sentence in err->text. */
int load_trace_time(const char *text, int64_t *at_ns, struct weir_err *err);

#endif
