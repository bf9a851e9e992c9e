/* SPDX-License-Identifier: MIT */
/* The tables of bench/SCHEDULING.md that are made in virtual time. Each prints Markdown. */
#ifndef WEIR_BENCH_SCHEDULING_TABLES_H
#define WEIR_BENCH_SCHEDULING_TABLES_H

#include "sim/group_search.h"

/** Medians over the seeds of a run. */
struct outcome {
	double per_s, mean_ms, p50_ms, p99_ms, busy, per_visit;
	double batches_per_s, switches; /* share of batches that began a visit */
	/* of each request: sim_group_result */
	double strangers, switched, reloaded;
};

/** Run `c` with seeds 1 to `seeds`. Exits if a run fails. */
struct outcome run_seeds(struct sim_config *c, int seeds);

/** Replace the sources by `clients` clients that send again as soon as they have a response. Each
 *  request takes one of the routes, in proportion to the rates of the sources. */
void close_loop(struct sim_config *c, int clients);

/** Give each of `n` parts stages, in the order of the graph, and cores. first[p] is the first stage of
 *  part p. */
void make_parts(struct sim_config *c, int n, const int *first, const int *cores);

void table_search(int seeds);   /* Gordon 4.9 to 4.11 */
void table_misses(int seeds);   /* Gordon 4.12, 4.13, 4.17, 4.18 */
void table_replicas(int seeds); /* Gordon 4.14 to 4.16 */
void table_cutoff(int seeds);   /* Harizopoulos */
void table_queues(int seeds);   /* libasync-smp table 2 */
void table_clients(int seeds);  /* libasync-smp figures 7 and 9 */
void table_cohorts(int seeds);  /* Larus figures 6 to 8 */

#endif
