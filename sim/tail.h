/* SPDX-License-Identifier: MIT */
/*
 * Simulates requests whose service times have a heavy tail, in virtual time: what the disciplines of
 * queues, the gate `cutoff` and the policy `srpt` do for the short ones.
 *
 * framework/sched/next.h chooses the stages, and framework/event/bins.h keeps the events of each
 * stage in order, both unmodified. The service times are of a bounded Pareto distribution. There are
 * two graphs:
 *
 *   one    a single stage does all the work of a request
 *   chain  parse -> short -> send
 *          parse -> part 1 -> ... -> part 8 -> send   for requests that are not short
 *
 * Each stage has one queue, which all cores share. A core takes at most 1 / cores of it, and at most
 * 1 ms of the stage's mean service, as a batch. The events of a batch leave when it ends. With the
 * gate `cutoff`, an event that has taken so long in a batch goes back to the queue.
 *
 * The result depends only on the configuration. All configurations with one seed face the same work.
 */
#ifndef WEIR_SIM_TAIL_H
#define WEIR_SIM_TAIL_H

#include "load/hdr.h"
#include "sched/next.h"

#define TAIL_CORES_MAX 64
#define TAIL_PARTS     8

struct tail_config {
	uint64_t seed;
	int cores;
	double load; /* 0..1 */
	bool chain;
	const struct next_policy *policy;
	struct next_limits limits;
	bool shortest;     /* queues give the least work first */
	int64_t starve_ns; /* of the queues; 0: never */
	double hint_error; /* the hint is the work times or divided by at most 1 + this */
	double alpha;      /* of the distribution */
	int64_t least_ns, most_ns;
	int64_t short_ns;          /* requests with no more work are short */
	int64_t batch_ns;          /* cost of a batch */
	uint64_t warmup, requests; /* the first ones are not counted */
};

struct tail_result {
	struct hdr all, brief, tail; /* response times of all requests, of short and of long ones */
	uint64_t yields;
};

/** Run until all requests have ended. Returns 0 or WEIR_ENOMEM. Different threads may run simulations
 *  concurrently. */
int tail_run(const struct tail_config *config, struct tail_result *result);

/** Fill in the configuration of the tables: 20 us to 50 ms, mean 120 us, 1.3 % of the requests over
 *  1 ms. The limits are those of gate `all`. */
void tail_fill(uint64_t seed, int cores, double load, struct tail_config *config);

#endif
