/* SPDX-License-Identifier: MIT */
/*
 * An objective for the latency, such as p99=50ms: at least 99 % of the due requests must be answered
 * with the outcome ok within 50 ms. Requests that are refused, fail or time out miss it, and so do
 * degraded answers.
 *
 * Latency includes the generator's lag. A phase that meets the objective therefore met it, however
 * late the generator was; one that misses it even with the lag deducted missed it. Only between
 * these two the lag decides, so that nothing is known about the server.
 *
 * Pure functions; any thread.
 */
#ifndef WEIR_LOAD_OBJECTIVE_H
#define WEIR_LOAD_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

struct load_objective {
	double quantile;  /* 0.99; above 0, below 1 */
	int64_t limit_ns; /* 1 us to 100 s */
};

enum load_met { LOAD_MET, LOAD_MISSED, LOAD_UNKNOWN };

/** Parse "p99=50ms"; p99.9 and p999 are the same. Returns 0, or WEIR_EINVAL with a message. */
int load_objective_parse(const char *text, struct load_objective *o, struct weir_err *err);

/** Return the share of the due requests of a phase that were answered within `limit_ns`; 0 without
 * requests. */
double load_in_time(
    const struct load_plan *plan, const struct load_phase_result *p, int64_t limit_ns);

/** Return whether a phase met the objective. A phase whose generator was late is LOAD_UNKNOWN in any
 * case: it did not offer the load that was planned. */
enum load_met load_objective_met(const struct load_plan *plan, const struct load_phase_result *p,
    const struct load_objective *o);

/** Return the limit of the generator's lag for an objective: a tenth of it, but at least 1 ms. A
 * tenth is a guess: so much less is left of the limit for the server in the worst case. */
int64_t load_objective_lag_ns(const struct load_objective *o);

#endif
