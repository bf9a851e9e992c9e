/* SPDX-License-Identifier: MIT */
/*
 * Phases from words of the command line: "1k..10k", "1k,2k,4k", "10x@20s+5s", "0.1x..10x".
 *
 * Rates as knobs of kind RATE ("500", "20k"), times as DURATION ("10s"). All add to the phases
 * there are and return 0, or WEIR_EINVAL with one sentence that names the offending word in
 * err->text and the plan as it was.
 */
#ifndef WEIR_LOAD_PHASES_H
#define WEIR_LOAD_PHASES_H

#include <weir/error.h>

#include "load/plan.h"

/** One phase of constant `rate`. */
int phases_constant(struct load_plan *plan, double per_s, int64_t for_ns, struct weir_err *err);

/** "FROM..TO": one linear phase. */
int phases_ramp(struct load_plan *plan, const char *text, int64_t for_ns, struct weir_err *err);

/** "A,B,C...": a phase of `for_ns` each. */
int phases_steps(struct load_plan *plan, const char *text, int64_t for_ns, struct weir_err *err);

/** "FACTORx@AT+FOR": the rate times FACTOR from AT (since the start of the first phase that is
 *  no warm-up) for FOR; splits the phases it touches. It must lie within the run. */
int phases_spike(struct load_plan *plan, const char *text, struct weir_err *err);

/** Put a warm-up of `for_ns` in front, at the rate that the first phase which is no pause begins
 *  with. */
int phases_warmup(struct load_plan *plan, int64_t for_ns, struct weir_err *err);

/** "0.1x..10x" or "0.5x,1x,2x": the multiples of a sweep into multiple[max]; a range becomes the
 *  load grid of the evaluation protocol within it (0.1 0.3 0.5 0.7 0.8 0.9 1.0 1.1 1.2 1.5 2 3
 *  5 10). Ascending, none twice. Returns how many, or WEIR_EINVAL. */
int phases_multiples(const char *text, double *multiple, int max, struct weir_err *err);

/** For each round 1..rounds, for each multiple a phase of capacity_per_s * multiple, a pause of
 *  `pause_ns` before each (the server's queues shall drain; 0: none). Odd rounds go up, even
 *  ones down, so that drift of the machine favours no rate. */
int phases_sweep(struct load_plan *plan, double capacity_per_s, const double *multiple, int n,
    int rounds, int64_t for_ns, int64_t pause_ns, struct weir_err *err);

/** Length of the whole run in ns. */
int64_t phases_total_ns(const struct load_plan *plan);

#endif
