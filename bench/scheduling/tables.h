/* SPDX-License-Identifier: MIT */
/* The tables of bench/SCHEDULING.md that are made in virtual time. Each prints Markdown. */
#ifndef WEIR_BENCH_SCHEDULING_TABLES_H
#define WEIR_BENCH_SCHEDULING_TABLES_H

#include "sim/group_search.h"

/** Medians over the seeds of a run. */
struct outcome {
	double per_s, mean_ms, p50_ms, p99_ms, busy, per_visit;
	double batches_per_s, switches; /* share of batches that began a visit */
};

/** Run `c` with seeds 1 to `seeds`. Exits if a run fails. */
struct outcome run_seeds(struct sim_config *c, int seeds);

/** Replace the sources by `clients` clients that send again as soon as they have a response. Each
 *  request takes one of the routes, in proportion to the rates of the sources. */
void close_loop(struct sim_config *c, int clients);

void table_search(int seeds);   /* Gordon 4.9 to 4.11 */
void table_replicas(int seeds); /* Gordon 4.14 to 4.16 */
void table_cutoff(int seeds);   /* Harizopoulos */
void table_queues(int seeds);   /* libasync-smp table 2 */
void table_clients(int seeds);  /* libasync-smp figures 7 and 9 */
void table_cohorts(int seeds);  /* Larus figures 6 to 8 */

#endif
