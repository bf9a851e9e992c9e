/* SPDX-License-Identifier: MIT */
/*
 * A run file in memory, for comparisons and reports: plan and result as in the engine, the metrics
 * of each phase, and its load points.
 *
 * A load point is one offered load: all rounds with the same rate or ramp. Warm-ups, pauses and
 * phases that never began belong to no point. Plain data, constant after reading.
 */
#ifndef WEIR_REPORT_RUNDATA_H
#define WEIR_REPORT_RUNDATA_H

#include <stdbool.h>

#include <jansson.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/* id, word in JSON, heading, more is better, smallest relevant distance of a ratio from 1 (guesses
 * at how much runs of one binary differ on a shared machine) */
#define RUN_METRICS(X)                                                                             \
	X(GOODPUT, "goodput_per_s", "goodput", 1, 0.02)                                            \
	X(P50, "p50_s", "p50", 0, 0.05)                                                            \
	X(P99, "p99_s", "p99", 0, 0.10)                                                            \
	X(P999, "p999_s", "p99.9", 0, 0.10)                                                        \
	X(SHED, "shed_share", "shed", 0, 0.03)                                                     \
	X(ERROR, "error_share", "errors", 0, 0.05)                                                 \
	X(CPU, "server_cpu_s_per_request", "server CPU", 0, 0.03)

enum run_metric {
#define RUN_METRIC_ENUM(id, word, heading, more, least) RUN_##id,
	RUN_METRICS(RUN_METRIC_ENUM)
#undef RUN_METRIC_ENUM
	    RUN_N_METRICS
};

/** A row of the table above. */
struct run_metric_row {
	const char *word, *heading;
	int more_is_better;
	double least;
};
extern const struct run_metric_row run_metric[RUN_N_METRICS];

/** Number of failures: error, timeout or gone. */
uint64_t run_failed(const uint64_t outcome[LOAD_N_OUTCOMES]);

/** Number of requests served: ok or degraded. */
uint64_t run_good(const uint64_t outcome[LOAD_N_OUTCOMES]);

struct run_point {
	char name[32];               /* "2x", "1000/s", "ramp" */
	double multiple;             /* load as a multiple of the capacity; 0 if not given as one */
	double from_per_s, to_per_s; /* planned rates of the first round */
	int rounds;
};

struct rundata {
	/* the label, or the file's name if there is no label; distinct among the runs */
	char name[96];
	char file[64];         /* the file's name without folders */
	json_t *json;          /* the whole file */
	struct load_plan plan; /* only closed, url, phases, timeout, class names and weights */
	struct load_result result;
	double capacity_per_s;          /* 0 if unknown */
	double (*value)[RUN_N_METRICS]; /* value[phase][metric]; NAN if unknown */
	double *offered_per_s;          /* [phase], measured */
	double *phase_at_s;             /* [phase], since the start of the run */
	int n_points;
	struct run_point *point; /* ascending by rate */
	int *point_of;           /* [phase], index in point; -1 if none */
};

/** Read the run file `path`. Returns 0, or the error of runfile_read with nothing to free. */
int rundata_read(const char *path, struct rundata *run, struct weir_err *err);
void rundata_fini(struct rundata *run);

/** Read path[0..n), n at least 1, into new run[n]. Runs with the same name get their file's name
 * appended. Returns 0, or the error of runfile_read for the first file that cannot be read, with
 * nothing to free. */
int rundata_read_all(char *const *path, int n, struct rundata **runs, struct weir_err *err);
void rundata_free_all(struct rundata *run, int n);

/** Store the median, lowest and highest value of `metric` over the rounds of a point in `out`.
 * Returns false if no round has a value. */
bool rundata_over_rounds(
    const struct rundata *run, int point, enum run_metric metric, double out[3]);

/** Store the median, lowest and highest measured offered rate over the rounds of a point in `out`.
 * Returns false if the point has no round. */
bool rundata_offered(const struct rundata *run, int point, double out[3]);

/** Add the latencies of served requests in all rounds of a point to `into`, for class `class_id`
 * or, if it is -1, for all classes. */
void rundata_latency(const struct rundata *run, int point, int class_id, struct hdr *into);

#endif
