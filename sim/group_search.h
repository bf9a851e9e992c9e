/* SPDX-License-Identifier: MIT */
/* The search engine of Gordon's thesis as a configuration of the simulator, and what scheduling
 * costs. */
#ifndef WEIR_SIM_GROUP_SEARCH_H
#define WEIR_SIM_GROUP_SEARCH_H

#include "sim.h"
#include "workload.h"

/** What scheduling costs in weir: medians of bench/micro_cells, micro_group and micro_next. */
struct sim_group_costs group_costs(void);

/** Return the offered load of group `group`: the mean number of cores that its services keep busy,
 *  divided by the number of cores. */
double group_load(const struct sim_config *c, int group);

/** Fill in the configuration of Gordon's search engine (group_search.c): 14 stages, a combiner with
 *  84 % of the work, gate `all`, no limits, 5,000 requests of warm-up and 50,000 that are measured
 *  on average. */
void group_search_fill(
    uint64_t seed, const struct next_policy *policy, int cores, double load, struct sim_config *c);

#endif
