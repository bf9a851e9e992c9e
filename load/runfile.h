/* SPDX-License-Identifier: MIT */
/*
 * The run file: one JSON file with everything about a load run and its measurements on the client
 * and the server side. bench/RUNFILE.md describes it. Its member `weir_run` is the version of the
 * format, 1.
 *
 * Durations are seconds (`_s`), rates per second, as in the admin API. Histograms are sparse lists
 * of [bucket, count] with the bucket numbers of load/hdr.h. The file is written under a temporary
 * name and then renamed, so an existing file is never left partly overwritten. Not thread-safe.
 */
#ifndef WEIR_LOAD_RUNFILE_H
#define WEIR_LOAD_RUNFILE_H

#include <jansson.h>

#include <weir/error.h>

#include "load/objective.h"
#include "load/plan.h"
#include "load/result.h"

/** Contents of a run file besides plan and result. All members except argv are optional. */
struct runfile_about {
	int argc;
	char **argv;                          /* the command line */
	const char *label;                    /* the user's name for this run */
	const char *version, *commit, *flags; /* of the generator */
	double capacity_per_s;                /* measured before or given; 0 if unknown */
	/* how the capacity was found, and with what confidence */
	const char *capacity_note;
	/* the objective that the run had to meet, and whether it did (enum load_met); NULL if there
	 * was none */
	const char *objective;
	enum load_met objective_met;
	/* Data from the admin endpoint: {"url", "start": {...}, "each": [{"at_s", "stages":
	 * [...]}...], "end": {...}, "decisions": [...]} with the bodies of /api/v1/stages
	 * unchanged. Borrowed; NULL if there is none. */
	json_t *server;
};

/** Write the run file `path` ("-" for standard output). Returns 0, or WEIR_ESYS or WEIR_ENOMEM with
 * err filled in. */
int runfile_write(const char *path, const struct load_plan *plan, const struct load_result *result,
    const struct runfile_about *about, struct weir_err *err);

/** Read and check a run file: every member that reports rely on must exist and have the right type.
 * The caller owns *run (json_decref). Returns 0, WEIR_ESYS or WEIR_ENOMEM; or WEIR_EINVAL for
 * a file that is not a run file or has another version, or if a member is wrong. The message names
 * the member. */
int runfile_read(const char *path, json_t **run, struct weir_err *err);

/** Parse the histogram of a JSON latency object into `h`. Returns 0 or WEIR_EINVAL. */
int runfile_hdr(const json_t *latency, struct hdr *h);

#endif
