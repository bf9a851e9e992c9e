/* SPDX-License-Identifier: MIT */
/*
 * The workloads W1 to W12 of the evaluation protocol (overload.md), as configurations of the
 * simulator: what is offered, in multiples of what the stages can do.
 *
 * Where the protocol leaves the size open it is that of the design's own simulations: four threads
 * on four cores, 5 ms mean (W1, W3: 1 ms), an objective of 100 ms that is also the clients'
 * deadline, four classes with 10, 20, 30 and 40 % of the load, a queue of 10,000 events, so that it
 * is the policy that refuses.
 */
#ifndef WEIR_SIM_WORKLOAD_H
#define WEIR_SIM_WORKLOAD_H

#include "sim.h"

struct sim_workload {
	const char *name; /* "W1" */
	const char *help;
	/* what counts of it, from the end of the warm-up: the spike, the fault; to_ns 0: all, INT64_MAX: to the end */
	int64_t from_ns, to_ns;
	bool pools; /* it is about the number of threads */
	void (*fill)(struct sim_config *c, double load);
};

/** The workload number `i`, NULL past the end; the one called `name`, NULL when there is none. */
const struct sim_workload *sim_workload_at(int i);
const struct sim_workload *sim_workload_find(const char *name);

/** The configuration of `w` at `load` times capacity with `policy` at every door, and the threads
 *  under `resize` (NULL: as many as there are at first). 2 s of warm-up, `measured_ns` measured. */
void sim_workload_fill(const struct sim_workload *w, double load,
    const struct admission_policy *policy, const struct resize_policy *resize, uint64_t seed,
    int64_t measured_ns, struct sim_config *c);

/** The same with another warm-up; trouble comes as long after it. */
void sim_workload_fill_warm(const struct sim_workload *w, double load,
    const struct admission_policy *policy, const struct resize_policy *resize, uint64_t seed,
    int64_t warmup_ns, int64_t measured_ns, struct sim_config *c);

/** Where in the time of `c` what counts of `w` begins and ends, ns. */
void sim_workload_span(
    const struct sim_workload *w, const struct sim_config *c, int64_t *from_ns, int64_t *to_ns);

/** Requests per second that the stages of `c` can do at best, by their sources' mix, with the
 *  threads that they may have: the smallest ceiling over a stage's share of the mix. */
double sim_capacity_per_s(const struct sim_config *c);

/** An admission policy's own settings, as a YAML without any would have them. */
struct weir_admission_spec sim_admission_defaults(void);

#endif
