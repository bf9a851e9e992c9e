/* SPDX-License-Identifier: MIT */
/* A run in virtual time as a row of the overload report (bench/report/overload/rows.h says what is in one). */
#ifndef WEIR_BENCH_OVERLOAD_JSON_H
#define WEIR_BENCH_OVERLOAD_JSON_H

#include <stdio.h>

#include "sim/sim.h"
#include "sim/workload.h"

/** Which run it was. */
struct overload_run {
	const struct sim_workload *workload;
	const char *policy;
	double load; /* times the capacity */
	int round;   /* its seed, 1 ... */
	/* goodput over capacity while the trouble lasts, p99 in ms, shares of what was offered and worked */
	double goodput, p99_ms, refused, wasted;
};

/** What the rows come from: the command line. One line of JSON. 0 or WEIR_ENOMEM. */
int overload_json_about(FILE *out, int argc, char *const *argv);

/** One line of JSON. 0 or WEIR_ENOMEM; that it was written is for the caller to ask `out`. */
int overload_json_run(FILE *out, const struct overload_run *run, const struct sim_config *c,
    const struct sim_result *r);

#endif
