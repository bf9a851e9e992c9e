/* SPDX-License-Identifier: MIT */
/*
 * A run file in memory, for comparisons and reports: plan and result as the engine had them, the
 * figures of each phase, and its load points.
 *
 * A load point is a load that was offered: all rounds of one rate (or ramp), which are its
 * repetitions. Warm-ups, pauses and phases that never began belong to none.
 * Plain data; read-only once read.
 */
#ifndef WEIR_REPORT_RUNDATA_H
#define WEIR_REPORT_RUNDATA_H

#include <stdbool.h>

#include <jansson.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/* id, word in JSON, heading, more is better, least ratio off 1 that interests (guesses: what runs of
 * one binary differ by on a shared machine) */
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

/** Error, timeout or gone: what is neither served nor refused. */
uint64_t run_failed(const uint64_t outcome[LOAD_N_OUTCOMES]);

/** Served: ok or degraded. */
uint64_t run_good(const uint64_t outcome[LOAD_N_OUTCOMES]);

struct run_point {
	char name[32];               /* "2x", "1000/s", "ramp" */
	double multiple;             /* of the capacity, 0: none */
	double from_per_s, to_per_s; /* as planned, in the first round */
	int rounds;
};

struct rundata {
	char name[96];         /* the label, else the file's name; unlike that of the other runs */
	char file[64];         /* its name without folders */
	json_t *json;          /* the whole file */
	struct load_plan plan; /* closed, url, phases, timeout, names and weights of classes */
	struct load_result result;
	double capacity_per_s;          /* 0: unknown */
	double (*value)[RUN_N_METRICS]; /* value[phase][metric]; NAN: not known */
	double *offered_per_s;          /* [phase], measured */
	double *phase_at_s;             /* [phase], since the start of the run */
	int n_points;
	struct run_point *point; /* ascending by rate */
	int *point_of;           /* [phase]: index in point, -1: none */
};

/** Read the run file `path`. 0, or what runfile_read returns; then nothing is to be freed. */
int rundata_read(const char *path, struct rundata *run, struct weir_err *err);
void rundata_fini(struct rundata *run);

/** Read path[0..n), n at least 1, into new run[n]; runs of the same name get their file's name, too. 0, or
 *  what runfile_read returns for the first that cannot be read; then nothing is to be freed. */
int rundata_read_all(char *const *path, int n, struct rundata **runs, struct weir_err *err);
void rundata_free_all(struct rundata *run, int n);

/** Median, lowest and highest value of `metric` over the rounds of a point; false when no round has
 *  one. */
bool rundata_over_rounds(
    const struct rundata *run, int point, enum run_metric metric, double out[3]);

/** The same of the measured offered rate. */
bool rundata_offered(const struct rundata *run, int point, double out[3]);

/** Latency of what was served in all rounds of a point, of class `class_id` or of all (-1), into
 *  `into`. */
void rundata_latency(const struct rundata *run, int point, int class_id, struct hdr *into);

#endif
