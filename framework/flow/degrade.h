/* SPDX-License-Identifier: MIT */
/*
 * Degradation: how much worse a stage should serve, from how loaded it is.
 *
 *   pressure over `above`: the level rises      between: it stays      under `below`: it falls
 *
 * by a tenth at a time, with at least `step_ns` between two tenths, so the full range takes ten steps. The pressure is
 * smoothed over DEGRADE_SMOOTH_STEPS steps first, since that of a short queue goes from 0 to full between two
 * looks. The gap between the bounds is the hysteresis: a pressure that trembles around one of them moves the level
 * one way only. One tenth per look, however late the look is: what the pressure was meanwhile nobody knows.
 *
 * The idea is service degradation of Welsh and Culler, "Adaptive Overload Control for Busy Internet Servers", USITS 2003,
 * where each stage moves its own quality; here the framework does, the same way up and down.
 *
 * Pure but for the struct; one thread at a time.
 */
#ifndef WEIR_FLOW_DEGRADE_H
#define WEIR_FLOW_DEGRADE_H

#include <stdbool.h>
#include <stdint.h>

/** Time constant of the smoothing, in steps. Measured with config/servers/degrade.yaml under noise from other programs: with
 *  none the level fell and rose again once a second at full load. */
#define DEGRADE_SMOOTH_STEPS 2

/** Levels between full quality and the cheapest. */
#define DEGRADE_TENTHS 10

struct degrade {
	double above, below; /* pressures, 0..1, below < above; above 1: never rises */
	int64_t step_ns;     /* between two tenths, above 0 */
	int tenths;          /* the level, 0 .. DEGRADE_TENTHS */
	int64_t due_ns;      /* no tenth before that; 0 at the start */
	double mean;         /* pressure, smoothed */
	int64_t looked_ns;   /* when it was last; 0: never */
};

/** Full quality. */
void degrade_init(struct degrade *d, double above, double below, int64_t step_ns);

/** The pressure is `pressure` (0..1) at `now_ns`. True when the level moved. */
bool degrade_step(struct degrade *d, double pressure, int64_t now_ns);

/** The level, 0..1. */
static inline double degrade_level(const struct degrade *d)
{
	return (double)d->tenths / DEGRADE_TENTHS;
}

#endif
