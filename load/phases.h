/* SPDX-License-Identifier: MIT */
/*
 * Builds the phases of a plan from command-line arguments: "1k..10k", "1k,2k,4k", "10x@20s+5s",
 * "0.1x..10x".
 *
 * Rates are written as in RATE knobs ("500", "20k"), times as in DURATION knobs ("10s"). The
 * functions add to the phases of the plan. Unless stated otherwise, they return 0, or WEIR_EINVAL
 * with a message in err->text that names the offending word; on failure the plan is unchanged.
 */
#ifndef WEIR_LOAD_PHASES_H
#define WEIR_LOAD_PHASES_H

#include <weir/error.h>

#include "load/plan.h"

/** Add one phase of constant rate. */
int phases_constant(struct load_plan *plan, double per_s, int64_t for_ns, struct weir_err *err);

/** Add one phase whose rate changes linearly, from "FROM..TO". */
int phases_ramp(struct load_plan *plan, const char *text, int64_t for_ns, struct weir_err *err);

/** Add a phase of `for_ns` for each rate in "A,B,C...". */
int phases_steps(struct load_plan *plan, const char *text, int64_t for_ns, struct weir_err *err);

/** Add a spike "FACTORx@AT+FOR": multiply the rate by FACTOR for the time FOR, starting at the time
 * AT after the end of the warm-up. Phases that lie only partly within the spike are split. The
 * spike must lie within the run. */
int phases_spike(struct load_plan *plan, const char *text, struct weir_err *err);

/** Insert a warm-up of `for_ns` at the beginning of the plan. Its rate is the initial rate of the
 * first phase that is not a pause. */
int phases_warmup(struct load_plan *plan, int64_t for_ns, struct weir_err *err);

/** Parse the multiples of a sweep, "0.1x..10x" or "0.5x,1x,2x", into multiple[0..max). A range
 * selects from the load grid of the evaluation protocol (0.1 0.3 0.5 0.7 0.8 0.9 1.0 1.1 1.2 1.5 2
 * 3 5 10). The multiples are stored in ascending order. A list must not have the same multiple
 * twice. Returns their number, or WEIR_EINVAL. */
int phases_multiples(const char *text, double *multiple, int max, struct weir_err *err);

/** For each of the `rounds` rounds and each multiple, add a phase with the rate capacity_per_s *
 * multiple. Each phase is preceded by a pause of `pause_ns`, in which the server's queues drain; 0
 * means no pause. Rates rise in odd rounds and fall in even ones, so that a machine that becomes
 * slower or faster during the run affects all rates equally. */
int phases_sweep(struct load_plan *plan, double capacity_per_s, const double *multiple, int n,
    int rounds, int64_t for_ns, int64_t pause_ns, struct weir_err *err);

/** Return the length of the whole run in ns. */
int64_t phases_total_ns(const struct load_plan *plan);

#endif
