/* SPDX-License-Identifier: MIT */
/*
 * A run file in memory, for comparisons and reports: the plan and the result in the engine's
 * structures, the metrics of each phase, and the load points.
 *
 * A load point is one offered load, with all rounds of the same rate or ramp. Warm-ups, pauses,
 * phases that never began and phases whose generator was late do not belong to any point. The
 * trials of a search have points of their own if the run has other phases, too. Plain data, constant after reading.
 */
#ifndef WEIR_REPORT_RUNDATA_H
#define WEIR_REPORT_RUNDATA_H

#include <stdbool.h>

#include <jansson.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/* id, word in JSON, heading, whether more is better, and the smallest relevant difference of a
 * ratio from 1 (these are guesses at how much runs of one binary differ on a shared machine) */
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

/** Return the number of requests that failed: error, timeout or gone. */
uint64_t run_failed(const uint64_t outcome[LOAD_N_OUTCOMES]);

/** Return the number of requests that were served: ok or degraded. */
uint64_t run_good(const uint64_t outcome[LOAD_N_OUTCOMES]);

struct run_point {
	char name[32]; /* "2x", "1000/s", "10..90/s" */
	/* load as a multiple of the capacity; 0 if it was not given as a multiple */
	double multiple;
	double from_per_s, to_per_s; /* planned rates of the first round */
	int rounds;
};

struct rundata {
	/* the label, or the file name if there is none; made distinct by rundata_read_all */
	char name[96];
	char file[64]; /* the file name without folders */
	json_t *json;  /* the whole file */
	/* Only these members are set: closed, url, phases, timeout, connections, threads, and the
	 * names and weights of the classes. */
	struct load_plan plan;
	struct load_result result;
	double capacity_per_s;          /* 0 if unknown */
	double (*value)[RUN_N_METRICS]; /* value[phase][metric]; NAN if unknown */
	double *offered_per_s;          /* [phase], measured */
	double *phase_at_s;             /* [phase], since the start of the run */
	int n_points;
	/* points of a search in a run that also has other phases */
	int n_trials;
	/* point[n_points], ascending by rate, then point[n_trials] of the search, likewise */
	struct run_point *point;
	int *point_of; /* [phase], index in point; -1 if none */
};

/** Read the run file `path`. Returns 0, or the error of runfile_read; in this case there is nothing
 * to free. */
int rundata_read(const char *path, struct rundata *run, struct weir_err *err);
void rundata_fini(struct rundata *run);

/** Read the files path[0..n), n >= 1, into a new array *runs, to be freed with rundata_free_all.
 * The file name is appended to the names of runs that have the same name. Returns 0, or the error
 * of runfile_read for the first file that cannot be read; in this case there is nothing to free. */
int rundata_read_all(char *const *path, int n, struct rundata **runs, struct weir_err *err);
void rundata_free_all(struct rundata *run, int n);

/** Store the median, lowest and highest value of `metric` over the rounds of a point in `out`.
 * Returns false if no round has a value. */
bool rundata_over_rounds(
    const struct rundata *run, int point, enum run_metric metric, double out[3]);

/** Store the median, lowest and highest measured offered rate over the rounds of a point in `out`.
 * Returns false if the point has no round. */
bool rundata_offered(const struct rundata *run, int point, double out[3]);

/** Set `into` to the latencies of the requests served in all rounds of a point, for class
 * `class_id`, or for all classes if it is -1. */
void rundata_latency(const struct rundata *run, int point, int class_id, struct hdr *into);

#endif
