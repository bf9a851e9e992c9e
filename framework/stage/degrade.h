/* SPDX-License-Identifier: MIT */
/*
 * Degradation: decides how far a stage reduces its quality of service, depending on its load.
 *
 *   pressure over `above`: the level rises      between: it stays      under `below`: it falls
 *
 * The level moves in steps of a tenth, at least `step_ns` apart, so the full range takes ten steps.
 * The pressure is first smoothed over DEGRADE_SMOOTH_STEPS steps, since the pressure of a short
 * queue jumps between 0 and 1 from one sample to the next. The gap between `above` and `below` is
 * the hysteresis: a pressure that oscillates around one of the two bounds moves the level in one
 * direction only. A late sample also moves the level by at most one step, since the pressure since
 * the last sample is unknown.
 *
 * The idea comes from service degradation in Welsh and Culler, "Adaptive Overload Control for Busy
 * Internet Servers", USITS 2003, where each stage controls its own quality. Here the framework
 * controls it, with the same rule in both directions.
 *
 * All state is in the struct. One thread at a time.
 */
#ifndef WEIR_STAGE_DEGRADE_H
#define WEIR_STAGE_DEGRADE_H

#include <stdbool.h>
#include <stdint.h>

/** Time constant of the smoothing, in steps. Measured with config/servers/degrade.yaml while other
 *  programs were running: without smoothing, the level fell and rose again once a second at full
 *  load. */
#define DEGRADE_SMOOTH_STEPS 2

/** Number of steps from full quality to the cheapest level. */
#define DEGRADE_TENTHS 10

struct degrade {
	/* pressure bounds, 0..1, below < above; if `above` is 1, the level never rises */
	double above, below;
	int64_t step_ns;   /* minimum time between two steps, greater than 0 */
	int tenths;        /* the level, 0 .. DEGRADE_TENTHS */
	int64_t due_ns;    /* earliest time of the next step; 0 before the first */
	double mean;       /* smoothed pressure */
	int64_t looked_ns; /* time of the last sample; 0 before the first */
};

/** Initialise `d` at full quality. */
void degrade_init(struct degrade *d, double above, double below, int64_t step_ns);

/** Add the sample `pressure`, 0..1, taken at `now_ns`. Returns whether the level has changed. */
bool degrade_step(struct degrade *d, double pressure, int64_t now_ns);

/** The level, 0..1. */
static inline double degrade_level(const struct degrade *d)
{
	return (double)d->tenths / DEGRADE_TENTHS;
}

#endif
