/* SPDX-License-Identifier: MIT */
/*
 * Decides which phases of a run count: a phase whose generator was late does not, since it measured
 * the generator or the machine. A run is void only if no phase of it counts.
 *
 * Pure functions; any thread.
 */
#ifndef WEIR_LOAD_JUDGE_H
#define WEIR_LOAD_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "load/plan.h"
#include "load/result.h"

/** Limit of the generator's lag if the plan sets none. */
#define LOAD_LAG_LIMIT_NS 1000000

/** Return the limit of the lag's 99th percentile in this plan, in ns. */
int64_t load_lag_limit_ns(const struct load_plan *plan);

/** Return the same for one phase. What counts beyond the capacity is the share of the requests that
 * are answered within the time-out, so the limit there is a tenth of the time-out, if that is more.
 * The share can only be too low because of the lag, since a time-out begins at the intended time. */
int64_t load_phase_lag_limit_ns(const struct load_plan *plan, int phase);

/** Return whether the generator was late: the 99th percentile of `lag` exceeds the limit, and at
 * least two requests were late. A single late request may be due to one interrupt. */
bool load_lag_late(const struct hdr *lag, int64_t limit_ns);

/** Return whether a phase offers load that results are taken from: no warm-up and no pause. In a
 * closed loop, every phase that is no warm-up does. */
bool load_phase_offers(const struct load_plan *plan, int phase);

/** Return whether the phase counts in results: it offers load, was begun, and its generator was not
 * late. */
bool load_phase_counts(const struct load_plan *plan, const struct load_result *result, int phase);

/** Return whether the run has phases other than trials of a search. Results are then taken from
 * those phases alone. */
bool load_has_runs(const struct load_plan *plan);

/** Set result->voided to the reason why no phase counts, or to "" if one counts or none was run.
 * Trials of a search are disregarded if there are other phases. */
void load_judge(const struct load_plan *plan, struct load_result *result);

#endif
