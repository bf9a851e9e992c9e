/* SPDX-License-Identifier: MIT */
/*
 * Decides what a run shows about a server under overload, and how certain that is.
 *
 * The loads of a run are points; a point has one phase per round. The reference is the best goodput:
 * the mean over all points that noise alone could keep from being the best, since the maximum of
 * many noisy values is too high. The verdict compares the goodput at the highest load with the
 * reference. Its 95 % interval follows from the noise, the relative standard deviation of the
 * goodput of one phase: with two or more rounds, from the spread of the rounds; with one round, from
 * the spread of the seconds within phases and that of neighbouring points around a smooth curve,
 * whichever is greater. A server is said to lose goodput, or to collapse, only if the whole interval
 * is below the limit.
 *
 * With five or more rounds (NOISE_PAIRS_MIN), the highest load is compared with the best loads round
 * by round instead, so slow changes of the machine cancel out (noise_pairs in report/noise.h).
 *
 * All of that presumes the same machine and server throughout the run. Loads well below the best
 * goodput test that: their requests must all be served, as in the search for the capacity. If they
 * are not, the machine changed during the run, and there is no verdict on overload, unless the loads
 * alternated in enough rounds.
 *
 * Pure functions; any thread. verdict_of takes time proportional to the phases times the points and
 * the seconds, and 90 KB of stack.
 */
#ifndef WEIR_REPORT_VERDICT_H
#define WEIR_REPORT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "load/plan.h"
#include "load/result.h"

/** Limits for the goodput at the highest load divided by the best goodput. The evaluation protocol
 * aims at 0.95. */
#define VERDICT_GOOD 0.95
#define VERDICT_FAIR 0.80
/** A load that is at most this share of the capacity, or of the best goodput if the load is no
 * multiple of a capacity, must be served. 0.95 is a guess: a search is accurate to 3 %. */
#define VERDICT_BELOW 0.95
/** Share of the offered requests that must be served there, unless the plan has another
 * (held_ratio). 0.95 is a guess: a trial of a search with an objective such as p99=100ms passes with
 * VERDICT_TRIAL. */
#define VERDICT_HELD  0.95
#define VERDICT_TRIAL 0.99
/** Ratio of the offered load to the best goodput above which a server counts as overloaded. */
#define VERDICT_OVERLOAD 1.2

enum verdict_kind {
	VERDICT_VOID,    /* no phase counts */
	VERDICT_NOTHING, /* nothing was served */
	/* no overload, since the generator was late at all loads that would have been one */
	VERDICT_GENERATOR,
	VERDICT_LIGHT,     /* no overload: a closed loop, or the load did not exceed the capacity */
	VERDICT_SINGLE,    /* overload, but no other load to compare it with */
	VERDICT_CHANGED,   /* loads below the capacity were not served: the machine changed */
	VERDICT_UNSURE,    /* the interval contains both a collapse and none */
	VERDICT_KEPT,      /* no loss of goodput under overload, beyond the noise */
	VERDICT_LOSES,     /* a loss, beyond the noise */
	VERDICT_COLLAPSES, /* a loss of more than a fifth, beyond the noise */
};

struct verdict {
	enum verdict_kind kind;
	bool closed;
	int n_points, rounds; /* rounds: the least number of phases at a point of overload */
	bool rises;        /* the goodput at the highest load is the best one, beyond the noise */
	double best_per_s; /* the reference, see above, or highest_per_s if it rises */
	double best_from, best_to; /* offered rates of the points of the reference, per second */
	double best_p99_s;         /* at the point with the best goodput; NAN if none was served */
	double offered_per_s;      /* the highest load */
	double highest_per_s;      /* the goodput there */
	double highest_p99_s;      /* NAN if nothing was served there */
	double kept, low, high;    /* highest_per_s / best_per_s, and its 95 % interval */
	double noise;              /* see above; NAN if it is unknown */
	int pairs;                 /* rounds from which the interval was derived; 0: see `noise` */
	double ratio_sd;     /* standard deviation of the ratio of a round; NAN without pairs */
	int n_below, n_held; /* loads that must be served, and those that were */
	double worst_share, worst_per_s; /* the least share served below, and its offered rate */
	int n_late;                      /* phases that do not count */
	double late_per_s; /* the highest rate at which the generator was late, or 0 */
};

/** Decide on a run. The plan and the result need only what rundata_read sets. */
struct verdict verdict_of(const struct load_plan *plan, const struct load_result *result);

/** Return whether phase `i` shows that the machine changed: a load that must be served, as a
 * multiple of the capacity, and was not. For a decision to repeat the phase. */
bool verdict_lost(const struct load_plan *plan, const struct load_result *result, int i);

/** Return whether phase `i` served at least 95 % of what it was offered, so it was no overload. */
bool verdict_served(const struct load_plan *plan, const struct load_result *result, int i);

/** Write the verdict in a few words: "well-conditioned under overload". Returns a constant. */
const char *verdict_word(const struct verdict *v);

/** Return "ok", "warn", "bad" or "plain", the level of the verdict. */
const char *verdict_level(const struct verdict *v);

/** Write the verdict as a sentence. Returns `buf`. */
char *verdict_sentence(const struct verdict *v, char *buf, size_t size);

/** Write how certain the result is, as a sentence: the noise and where it was measured, or that
 * there is one round. "" if that is not applicable. Returns `buf`. */
char *verdict_certainty(const struct verdict *v, char *buf, size_t size);

/** Write whether loads below the capacity were served, or "" if there were none. Returns `buf`. */
char *verdict_check(const struct verdict *v, char *buf, size_t size);

#endif
