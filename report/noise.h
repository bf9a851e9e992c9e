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

#endif
