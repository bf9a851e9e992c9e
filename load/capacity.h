/* SPDX-License-Identifier: MIT */
/*
 * Searches for the knee: the highest rate at which a server meets its objective.
 *
 * The module is pure: the caller runs the trials, and the search chooses the rate of the next trial
 * and decides when to stop. The search doubles the start rate until the server fails, or halves it
 * until the server passes. It then bisects the interval between the highest passing and the lowest
 * failing rate on a logarithmic scale, until the two differ by at most `precision`. Trials are
 * noisy, so a rate is tried until two trials have the same outcome. This takes at most three
 * trials. The reported confidence is the share of all trials that agreed with the decision on their
 * rate.
 *
 * A trial whose generator was late proves nothing about the server, whatever its outcome. It is not
 * counted, and the rate is tried again. If the generator is late too often, the search ends. Its
 * result is then the highest rate that passed: the capacity is at least that, and the generator can
 * do no more. If none has passed, the search is void and yields no capacity. A trial may also miss its objective by no more than the lag, so that the
 * server may have met it. After CAPACITY_LATE_IN_A_ROW such trials at a rate, the rate counts as
 * met, and the description of the result names the number of these rates.
 */
#ifndef WEIR_LOAD_CAPACITY_H
#define WEIR_LOAD_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum rates tried: 20 doublings and 10 bisections reach any practical rate. */
#define CAPACITY_RATES_MAX 40

/** Number of consecutive late trials at one rate that ends a search. 3 is a guess: one late trial
 * may be due to the machine, but three are due to the generator. */
#define CAPACITY_LATE_IN_A_ROW 3

/** Total number of late trials that ends a search. Without this limit, a generator that is late now
 * and then could prolong a search indefinitely. 8 is a guess: with at most 120 trials that count,
 * and a warm-up for each trial, a search fits in LOAD_PHASES_MAX. */
#define CAPACITY_LATE_MAX 8

struct capacity {
	/* highest rate that passed and lowest rate that failed; 0 if there is none yet */
	double good_per_s, bad_per_s;
	double precision;   /* above 0; stop when bad/good is at most 1 + precision */
	double limit_per_s; /* never try a higher rate */
	double rate_per_s;  /* rate of the next trial */
	int passed, failed; /* trials at rate_per_s, by outcome */
	/* totals so far; n_against counts trials that disagreed with the decision at their rate */
	int n_rates, n_trials, n_against;
	int late, n_late;       /* late trials in a row at rate_per_s, and in total */
	int unknown, n_unknown; /* trials that the lag left open, at rate_per_s and in total */
	int n_lenient;          /* rates that count as met because of that */
	int64_t worst_late_ns;  /* the worst 99th percentile of the lag in late trials */
	bool done;
	/* the search ended because the generator was late too often: after a rate that passed, or
	 * before any */
	bool limited, voided;
};

/** Starts a search at `start_per_s`, which must be above 0. */
void capacity_start(struct capacity *c, double start_per_s, double limit_per_s, double precision);

/** Returns the rate of the next trial, or 0 if the search is over. Unless the search is void,
 * good_per_s is then the capacity, or 0 if not even the lowest rate passed. If the search was
 * limited by the generator, the capacity is at least good_per_s. */
double capacity_next(const struct capacity *c);

/** Records whether the server met the objective in the trial at the rate from capacity_next. */
void capacity_tell(struct capacity *c, bool kept);

/** Records a trial that does not count because the generator was late: its lag was `lag_ns` at the
 * 99th percentile. capacity_next then returns the same rate again, or 0 if that ends the search. */
void capacity_tell_late(struct capacity *c, int64_t lag_ns);

/** Records a trial that missed the objective by no more than the generator's lag. */
void capacity_tell_unknown(struct capacity *c);

/** Returns the number of trials that the search probably still needs: an estimate, at least 1
 * before the search is over, and 0 after it. */
int capacity_left(const struct capacity *c);

/** Returns the share of trials that agreed with the decision at their rate, 0..1; 1 before the
 * first trial. */
double capacity_confidence(const struct capacity *c);

/** Describes the outcome in one sentence: "1,840/s met p99 <= 50 ms, 1,925/s did not; 24 trials,
 * 96 % agreed". For a void search it begins with "not found", for a limited one with "at least". */
void capacity_describe(const struct capacity *c, const char *objective, char *buf, size_t size);

/** Writes the reason why the search is void to `buf`, or "" if it is not void. */
void capacity_why_void(const struct capacity *c, char *buf, size_t size);

#endif
