/* SPDX-License-Identifier: MIT */
/*
 * Simulates a core group in virtual time: framework/sched/next.h, unmodified, with a model of the
 * cores and their lists.
 *
 *   Poisson arrivals -> queue of the first stage -> a core takes a batch
 *                    -> cell or queue of the next stage
 *
 * The model:
 *
 * - cores: each runs one batch at a time. A batch takes `batch_ns` and the services of its events,
 *   and `switch_ns` more if the core was at another stage before.
 * - cells and queues: a stage has a list on each core, its cell, and a queue that all cores share.
 *   A batch takes from the cell first, then at most 1 / cores of the queue. It has at most `cohort`
 *   events, and at most 1 ms of mean service.
 * - sending: the events of a batch go on when it ends. They enter the cells of the core. They enter
 *   a queue instead if the next stage is not local, or if they are dealt.
 * - dealing, if `deal` is set: the events of a batch are dealt if a core is idle, and this core has
 *   two stages with events in their cells, or four events in all.
 * - when a queue has events, one idle core is woken, which begins after `wake_ns`.
 * - no admission, no deadline and no bound: loads are below saturation.
 *
 * The result depends only on the configuration. Service times are drawn by request and stage, so
 * two policies face the same work.
 */
#ifndef WEIR_SIM_GROUP_H
#define WEIR_SIM_GROUP_H

#include "load/hdr.h"
#include "sched/next.h"
#include "sim.h"

#define GROUP_CORES_MAX  64
#define GROUP_ROUTES_MAX 16

struct group_stage {
	const char *name;
	struct sim_dist service; /* of one event */
	uint32_t cohort;         /* at least 1 */
	bool local;              /* its events may wait in cells */
};

/** The stages that a request visits, in order. */
struct group_route {
	int n;
	int stage[SIM_STAGES_MAX];
	double weight; /* share of the arrivals, relative to the other routes */
};

struct group_config {
	uint64_t seed;
	const struct next_policy *policy;
	struct next_limits limits;
	int cores, n_stages, n_routes;
	struct group_stage stage[NEXT_STAGES_MAX];
	struct group_route route[GROUP_ROUTES_MAX];
	double rate_per_s;
	int64_t batch_ns, switch_ns, wake_ns;
	bool deal;
	/* the first `warmup` requests are not counted; the `requests` after them are */
	uint64_t warmup, requests;
};

struct group_stage_result {
	uint64_t events, batches, visits; /* visits (sched/next.h) that have begun */
	int64_t longest_ns;               /* longest wait of an event until a core took it */
};

struct group_result {
	struct hdr response; /* of the counted requests */
	uint64_t arrived, ended;
	uint64_t by_why[5]; /* choices by enum next_why */
	uint64_t dealt;     /* events that went to a queue for an idle core */
	uint64_t from_queue;
	int64_t ended_ns;
	int64_t busy_ns[GROUP_CORES_MAX];
	struct group_stage_result stage[NEXT_STAGES_MAX];
};

/** Run until all requests have ended. Returns 0, WEIR_EINVAL for a load of 1 or more, or
 *  WEIR_ENOMEM. Different threads may run simulations concurrently. */
int group_run(const struct group_config *config, struct group_result *result);

/** Return the offered load: the mean number of cores that the services keep busy, divided by the
 *  number of cores. */
double group_load(const struct group_config *config);

/** Fill in `config` with Gordon's search engine (group_search.c): 14 stages, a combiner with 84 %
 *  of the work, gate `all`, and no limits. */
void group_search_fill(uint64_t seed, const struct next_policy *policy, int cores, double load,
    struct group_config *config);

#endif
