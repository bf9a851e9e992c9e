/* SPDX-License-Identifier: MIT */
/* Writes simulated runs as rows of the overload report (format: report/overload/rows.h). */
#ifndef WEIR_BENCH_OVERLOAD_JSON_H
#define WEIR_BENCH_OVERLOAD_JSON_H

#include <stdio.h>

#include "sim/sim.h"
#include "sim/workload.h"

/** Identification and results of a run. */
struct overload_run {
	const struct sim_workload *workload;
	const char *policy;
	double load; /* multiple of the capacity */
	int round;   /* seed of the run, from 1 */
	/* goodput: divided by the capacity, during the spike or fault if there is one; refused: the
	 * share of the offered requests; wasted: the share of the handlers' time */
	double goodput, p99_ms, refused, wasted;
};

/** Write the command line, as the origin of the rows, as one line of JSON. Returns 0 or
 * WEIR_ENOMEM. */
int overload_json_about(FILE *out, int argc, char *const *argv);

/** Write a run as one line of JSON. Returns 0 or WEIR_ENOMEM; the caller checks `out` for write
 * errors. */
int overload_json_run(FILE *out, const struct overload_run *run, const struct sim_config *c,
    const struct sim_result *r);

#endif
