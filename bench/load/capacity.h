/* SPDX-License-Identifier: MIT */
/*
 * Where is the knee? The search for the highest rate at which a server keeps its objective.
 *
 * Pure: the caller runs trials, the search says at which rate and when to stop. First the rate doubles
 * from a start until a rate fails (or halves until one passes), then it is bisected in the logarithm
 * until good and bad are `precision` apart. Trials are noisy, so a rate is decided by the first two
 * that agree, at most three; how often they disagreed is the confidence that is reported.
 *
 * A trial whose generator was late proves nothing about the server, whatever came of it: it counts for neither
 * side and the rate is tried again. When that does not help the search is void, without a capacity.
 */
#ifndef WEIR_LOAD_CAPACITY_H
#define WEIR_LOAD_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Rates tried at most: 20 doublings and 10 bisections reach any rate there is. */
#define CAPACITY_RATES_MAX 40

/** Late trials in a row at one rate that end a search: once may be the machine's, three times is the generator. Guess. */
#define CAPACITY_LATE_IN_A_ROW 3

/** Late trials of a whole search that end it: one that is late now and then shall not take for ever. Guess; with the
 *  120 others there may be, each with its warm-up, they fit LOAD_PHASES_MAX. */
#define CAPACITY_LATE_MAX 8

struct capacity {
	double good_per_s,
	    bad_per_s;      /* highest that passed, lowest that failed above it; 0: none yet */
	double precision;   /* stop when bad/good is at most 1 + precision, > 0 */
	double limit_per_s; /* never try above */
	double rate_per_s;  /* under trial */
	int passed, failed; /* trials at that rate */
	int n_rates, n_trials,
	    n_against;         /* so far; trials that the decision at their rate went against */
	int late, n_late;      /* trials whose generator was late: in a row at that rate, so far */
	int64_t worst_late_ns; /* their worst lag, 99th percentile */
	bool done;
	bool voided; /* done, because the generator stayed late */
};

/** Begin at `start_per_s` > 0. */
void capacity_start(struct capacity *c, double start_per_s, double limit_per_s, double precision);

/** The rate of the next trial, or 0 when the search is over: then good_per_s is the capacity (0: not even the
 *  lowest rate passed). */
double capacity_next(const struct capacity *c);

/** A trial at that rate kept the objective, or did not. */
void capacity_tell(struct capacity *c, bool kept);

/** A trial at that rate does not count: the generator was late, by `lag_ns` at the 99th percentile. capacity_next
 *  says the same rate again, or 0 when the search is void. */
void capacity_tell_late(struct capacity *c, int64_t lag_ns);

/** Share of trials that agreed with the decision at their rate, 0..1; 1 when there were none. */
double capacity_confidence(const struct capacity *c);

/** One sentence: "1,840/s kept p99 <= 50 ms, 1,925/s did not; 24 trials, 96 % agreed". Of a void search it begins
 *  with "not found". */
void capacity_describe(const struct capacity *c, const char *objective, char *buf, size_t size);

/** Why the search is void, "" when it is not. */
void capacity_why_void(const struct capacity *c, char *buf, size_t size);

#endif
