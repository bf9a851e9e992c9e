/* SPDX-License-Identifier: MIT */
/*
 * Configures the simulator for the workloads W1 to W12 of the evaluation protocol
 * (bench/OVERLOAD.md). Loads are multiples of the stages' capacity.
 *
 * Unless a workload sets other values, a stage has four threads on four cores, a mean service time
 * of 5 ms (W1, W3: 1 ms) and an objective of 100 ms, which is also the clients' deadline. Four
 * classes have 10, 20, 30 and 40 % of the load. The queue limit of 10,000 events is so high that
 * the policy refuses events before the queue is full.
 */
#ifndef WEIR_SIM_WORKLOAD_H
#define WEIR_SIM_WORKLOAD_H

#include "sim.h"

struct sim_workload {
	const char *name; /* "W1" */
	const char *help;
	/* The evaluated interval (the spike or the fault), counted from the end of the warm-up. If
	 * to_ns is 0, the whole run is evaluated; if it is INT64_MAX, the interval lasts until the
	 * end of the run. */
	int64_t from_ns, to_ns;
	bool pools; /* the workload tests the resize policy */
	void (*fill)(struct sim_config *c, double load);
};

/** Return the workload number `i`, or NULL past the end; or the workload called `name`, or NULL if
 * there is none. */
const struct sim_workload *sim_workload_at(int i);
const struct sim_workload *sim_workload_find(const char *name);

/** Fill in the configuration of `w` at `load` times the capacity, with `policy` as the admission of
 * every stage and `resize` for threads (NULL keeps the initial number). The run has 2 s of warm-up
 * and `measured_ns` of measured time. */
void sim_workload_fill(const struct sim_workload *w, double load,
    const struct admission_policy *policy, const struct resize_policy *resize, uint64_t seed,
    int64_t measured_ns, struct sim_config *c);

/** Like sim_workload_fill, but with a warm-up of `warmup_ns`. Spikes and faults start at the same
 * time after it. */
void sim_workload_fill_warm(const struct sim_workload *w, double load,
    const struct admission_policy *policy, const struct resize_policy *resize, uint64_t seed,
    int64_t warmup_ns, int64_t measured_ns, struct sim_config *c);

/** Return the start and end of the evaluated interval of `w` in *from_ns and *to_ns, on the time
 * axis of `c`. */
void sim_workload_span(
    const struct sim_workload *w, const struct sim_config *c, int64_t *from_ns, int64_t *to_ns);

/** Return the capacity of `c` in requests per second, for the mix of its sources: the smallest
 * ratio of a stage's ceiling to the share of requests that visit the stage. The ceiling is that of
 * the stage's servers, or of its maximum number of threads if it has no servers. */
double sim_capacity_per_s(const struct sim_config *c);

/** Return the default settings of an admission policy, as with an empty YAML section. */
struct weir_admission_spec sim_admission_defaults(void);

#endif
