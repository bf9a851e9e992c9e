/* SPDX-License-Identifier: MIT */
/*
 * The run file: everything one load run was and measured, client and server side, in one JSON file
 * (bench/README.md describes it; member `weir_run` is its version, 1).
 *
 * Durations are seconds (`_s`), rates per second, as in the admin API. Histograms are sparse lists
 * of [bucket, count] with the bucket numbers of load/hdr.h. Written to a temporary name and renamed,
 * so an old file is never half overwritten. Not thread-safe.
 */
#ifndef WEIR_LOAD_RUNFILE_H
#define WEIR_LOAD_RUNFILE_H

#include <jansson.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/** What a run file says beside plan and result. All optional but argv. */
struct runfile_about {
	int argc;
	char **argv;                          /* the command line */
	const char *label;                    /* the user's name for this run */
	const char *version, *commit, *flags; /* of the generator */
	double capacity_per_s;                /* found before or given; 0: unknown */
	const char *capacity_note;            /* how, with which confidence */
	json_t *
	    server; /* what the admin endpoint said: {"url", "start": {...}, "each": [{"at_s", "stages": [...]}...], "end": {...},
			   "decisions": [...]} with the bodies of /api/v1/stages as they came; borrowed; NULL: none */
};

/** Write the run file `path` ("-": standard output). 0, WEIR_ESYS, WEIR_ENOMEM with err filled. */
int runfile_write(const char *path, const struct load_plan *plan, const struct load_result *result,
    const struct runfile_about *about, struct weir_err *err);

/** Read and check a run file: every member that reports rely on is there and of its kind. The caller owns *run
 *  (json_decref). 0, WEIR_ESYS, WEIR_EINVAL (no run file, another version, what is wrong where), WEIR_ENOMEM. */
int runfile_read(const char *path, json_t **run, struct weir_err *err);

/** The histogram of a JSON latency object into `h`. 0 or WEIR_EINVAL. */
int runfile_hdr(const json_t *latency, struct hdr *h);

#endif
