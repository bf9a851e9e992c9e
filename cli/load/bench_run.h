/* SPDX-License-Identifier: MIT */
/*
 * The runs of one `weir bench`: what bench.c, bench_search.c, bench_sweep.c and bench_summary.c share.
 *
 * A `side` is a server under load, with the joined results of all its runs. Main thread only, except
 * for `bench_stop_asked`, which a signal handler sets.
 */
#ifndef WEIR_CLI_BENCH_RUN_H
#define WEIR_CLI_BENCH_RUN_H

#include <stdatomic.h>

#include "bench.h"
#include "load/objective.h"

#define BENCH_SIDES_MAX 2

/* Default length of the warm-up before each trial. In this time caches are filled and pools
 * settle. */
#define BENCH_WARMUP_NS 1000000000

struct bench_side {
	struct load_plan plan;     /* its phases are those of all runs so far */
	struct load_result result; /* joined results of all runs so far */
	json_t *server;            /* responses of its admin endpoint; NULL if not polled */
	char out[1024];            /* path of the run file, "" if none */
};

struct bench {
	const struct bench_request *req;
	int n_sides;
	struct bench_side side[BENCH_SIDES_MAX];
	const char *slo; /* as given, or the default for a search; NULL if there is none */
	struct load_objective objective;
	bool realtime;    /* the generator now asks for real-time priority */
	bool quiet_lines; /* print no lines of progress: a search prints one per trial */
	double capacity_per_s;
	char capacity_note[400];
	/* progress: what is being done, the time that all runs so far took, and an estimate of the
	 * time that is left after the current run */
	char part[48];
	int64_t before_ns, after_ns;
};

/** A signal asked to end the current run. */
extern atomic_bool bench_stop_asked;

/** Run `phases` against one side, and add the results to those of the side. Returns 0, or a WEIR_E
 *  code with a message in `err`. */
int bench_run(
    struct bench *b, struct bench_side *s, const struct load_plan *phases, struct weir_err *err);

/** Exclude phase `i` of a side from all results. It remains in the run file, with `why` and its
 *  rate as its name. */
void bench_set_aside(struct bench_side *s, int i, const char *why);

/** The generator was late, by `lag_ns`: from now on it asks for real-time priority, unless that was
 *  excluded by --priority. */
void bench_was_late(struct bench *b, int64_t lag_ns);

/** Search for the capacity of the first side (bench_search.c), from `start_per_s`. Sets the
 *  capacity and its note. Returns 0, or a WEIR_E code with a message in `err`. */
int bench_search(struct bench *b, double start_per_s, struct weir_err *err);

/** Return the time that all rounds of the sweep take, in ns; 0 if there is no sweep. */
int64_t bench_sweep_ns(const struct bench *b);

/** Run a round of the sweep against each side (bench_sweep.c). Phases that do not count are
 *  repeated. If loads below the capacity are no longer served, the capacity is found again and the
 *  sweep starts over, once. Returns 0, or a WEIR_E code with a message in `err`. */
int bench_sweep(struct bench *b, struct weir_err *err);

/** Return whether --slo is an objective to be met by the runs: it is, unless it guides a search. */
bool bench_is_gate(const struct bench *b);

/** Return whether the phases of a side met the objective: LOAD_MISSED if one missed it. Of a sweep,
 *  only loads up to the capacity are judged. */
enum load_met bench_gate(const struct bench *b, const struct bench_side *s);

/** Print the summary of a side: the screen before the table (bench_summary.c). */
void bench_print_summary(FILE *out, const struct bench *b, const struct bench_side *s);

#endif
