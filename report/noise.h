/* SPDX-License-Identifier: MIT */
/*
 * Measures the noise of a run: by how much the goodput of a phase varies if its load does not.
 *
 * Only points whose load exceeds what was served tell: below the capacity, goodput is the offered
 * load, whatever the machine does. Pure functions; any thread.
 */
#ifndef WEIR_REPORT_NOISE_H
#define WEIR_REPORT_NOISE_H

#include <stdbool.h>

#include "load/plan.h"
#include "load/result.h"

/** Maximum number of phases at a point; further ones are left out. 64 is the maximum of --rounds. */
#define NOISE_ROUNDS_MAX 64
#define NOISE_POINTS_MAX 64

/** One load, with a phase per round. */
struct noise_point {
	double multiple;
	double good_per_s, offered_per_s; /* medians */
	bool best;                        /* as good as the best goodput; set by verdict_of */
	int n;
	int phase[NOISE_ROUNDS_MAX];
	double good[NOISE_ROUNDS_MAX], offered[NOISE_ROUNDS_MAX]; /* per second */
};

struct noise_points {
	int n;
	struct noise_point point[NOISE_POINTS_MAX]; /* ascending by offered rate */
};

/** Return whether the load at the point exceeds the capacity: it is no multiple below 1, and exceeds
 * what was served by more than a twentieth. */
bool noise_is_loaded(const struct noise_point *p);

/** Return the relative standard deviation of the goodput of one phase, at least 0.005; NAN if
 * nothing tells it. *t is set to the factor for a 95 % interval (Student's t, two-sided). */
double noise_of(const struct noise_points *all, const struct load_plan *plan,
    const struct load_result *result, double *t);

/** Least number of rounds for an interval from the ratios of rounds. With fewer, Student's t is so
 * great that the interval says little. */
#define NOISE_PAIRS_MIN 5

/** The highest load compared with the best loads, round by round. */
struct noise_pairs {
	int n;                  /* rounds that have both */
	double kept, low, high; /* the geometric mean of the ratios, and its interval */
	double sd;              /* the standard deviation of a ratio, as a share */
};

/** Compare the last point with the points that are `best`, and those between them, in each round; if
 * a round has one other load only, with that. Loads that were served are left out: they do not tell
 * what could have been served.
 * Changes of the machine that last longer than a round cancel out. The interval is that of Pocock's
 * test (1977): at three looks at a growing number of rounds, it misses the true ratio in 5 % of all
 * runs at any of them; at one look, in 2 %. Rounds are the members `round` of the phases. With fewer
 * than two rounds, the interval is unknown (NAN). */
struct noise_pairs noise_pairs(const struct noise_points *all, const struct load_plan *plan);

#endif
