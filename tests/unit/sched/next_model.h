/* SPDX-License-Identifier: MIT */
/*
 * A core group in virtual time, for tests of next_choose.
 *
 * 1 to 64 cores visit the same stages. A stage has a list on each core (its cell) and a queue that
 * all cores share. Events arrive in bursts at the queues; a batch sends its events on to later
 * stages, now and then back to an earlier one, through the core's own cells, or through the queues
 * if another core is idle. Each core has its own next_core and its own oracle, which checks each
 * choice. With the gate `cutoff`, some events yield and wait again behind the others of their cell.
 *
 * A run depends only on its configuration.
 */
#ifndef WEIR_TESTS_SCHED_NEXT_MODEL_H
#define WEIR_TESTS_SCHED_NEXT_MODEL_H

#include "sched/next_oracle.h"

#define MODEL_CORES_MAX 64

struct model_config {
	uint64_t seed;
	const struct next_policy *policy;
	struct next_limits limits;
	int n_stages, n_cores;
	uint32_t cohort; /* maximum of a batch */
	double load;     /* offered work / cores; over 1: overload */
	bool pauses;     /* stages are paused now and then */
	bool equal;      /* all work on all stages alike, no measurement yet */
	int choices;     /* of all cores */
};

struct model_result {
	uint64_t by_why[5];      /* choices by reason */
	uint64_t policy_checked; /* choices of the policy that the oracle recomputed */
	uint64_t quick;          /* choices that next_quick could make */
	uint64_t arrived, ended, waiting;
	const char *broken; /* the law that was broken, or NULL */
	int core;           /* where it was broken */
	int choice;
};

void model_run(const struct model_config *c, struct model_result *r);

/** A configuration drawn from `seed`, with this policy and gate. */
struct model_config model_draw(
    uint64_t seed, const struct next_policy *policy, enum next_gate gate);

#endif
