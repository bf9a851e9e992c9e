/* SPDX-License-Identifier: MIT */
/*
 * Where is the knee? The search for the highest rate at which a server keeps its objective.
 *
 * Pure: the caller runs trials, the search says at which rate and when to stop. First the rate doubles
 * from a start until a rate fails (or halves until one passes), then it is bisected in the logarithm
 * until good and bad are `precision` apart. Trials are noisy, so a rate is decided by the first two
 * that agree, at most three; how often they disagreed is the confidence that is reported.
 */
#ifndef WEIR_LOAD_CAPACITY_H
#define WEIR_LOAD_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>

/** Rates tried at most: 20 doublings and 10 bisections reach any rate there is. */
#define CAPACITY_RATES_MAX 40

struct capacity {
	double good_per_s,
	    bad_per_s;      /* highest that passed, lowest that failed above it; 0: none yet */
	double precision;   /* stop when bad/good is at most 1 + precision, > 0 */
	double limit_per_s; /* never try above */
	double rate_per_s;  /* under trial */
	int passed, failed; /* trials at that rate */
	int n_rates, n_trials,
	    n_against; /* so far; trials that the decision at their rate went against */
	bool done;
};

/** Begin at `start_per_s` > 0. */
void capacity_start(struct capacity *c, double start_per_s, double limit_per_s, double precision);

/** The rate of the next trial, or 0 when the search is over: then good_per_s is the capacity (0: not even the
 *  lowest rate passed). */
double capacity_next(const struct capacity *c);

/** A trial at that rate kept the objective, or did not. */
void capacity_tell(struct capacity *c, bool kept);

/** Share of trials that agreed with the decision at their rate, 0..1; 1 when there were none. */
double capacity_confidence(const struct capacity *c);

/** One sentence: "1,840/s kept p99 <= 50 ms, 1,925/s did not; 24 trials, 96 % agreed". */
void capacity_describe(const struct capacity *c, const char *objective, char *buf, size_t size);

#endif
