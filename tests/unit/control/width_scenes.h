/* SPDX-License-Identifier: MIT */
/*
 * Scenes for width policies (width_sim.h): another side in a steady state, and one change of it.
 * The tests assert their figures, and bench/width_table prints them.
 *
 * A stage settles for a minute. Then the scene begins, and from SCENE_AFTER_S on (or three service
 * times, if that is longer) the events served are compared with those possible.
 */
#ifndef WEIR_TESTS_UNIT_CONTROL_WIDTH_SCENES_H
#define WEIR_TESTS_UNIT_CONTROL_WIDTH_SCENES_H

#include "width_sim.h"

#define SCENE_SETTLE_S 60
#define SCENE_AFTER_S  3

/* Another side, and how much is offered to it. */
struct side {
	const char *name;
	int servers;
	double service_s, offered_per_s;
	bool exponential;
};

static const struct side sides[] = {
    {"6 x 20 ms, 1x", 6, 0.02, 300, false},
    {"6 x 20 ms, 2x", 6, 0.02, 600, false},
    {"6 x 20 ms, 10x", 6, 0.02, 3000, true},
    {"300 x 1 s, 1x", 300, 1, 315, false},
    {"300 x 1 s, 2x", 300, 1, 600, false},
    {"300 x 1 s, 10x", 300, 1, 3000, true},
    {"40 x 10 ms, 2x", 40, 0.01, 8000, false},
    {"40 x 10 ms, 2x", 40, 0.01, 8000, true},
    {"100 x 100 ms, 3x", 100, 0.1, 3000, true},
    {"20 x 100 ms, 3x", 20, 0.1, 600, true},
    {"1 x 5 ms, 5x", 1, 0.005, 1000, false},
    {"2 x 50 ms, 3x", 2, 0.05, 120, true},
};

#define N_SIDES (int)(sizeof(sides) / sizeof(sides[0]))

enum scene_kind {
	SCENE_STEADY,
	SCENE_SLOWER_2,
	SCENE_SLOWER_3,
	SCENE_BACK, /* three times slower for a minute, and as before */
	SCENE_FASTER_3,
	SCENE_FEWER,   /* a third of the servers */
	SCENE_MORE,    /* three times as many */
	SCENE_STOPS,   /* for 5 s */
	SCENE_ACCEPTS, /* half as many as it serves, and refuses the others */
	SCENE_REFUSES, /* every second event */
	N_SCENES
};

static const char *const scene_names[N_SCENES] = {"steady for 300 s", "twice as slow",
    "three times as slow", "as fast as before again", "three times as fast",
    "a third of the servers", "three times the servers", "stops for 5 s", "accepts half",
    "refuses every second"};

/* The figures of one run. Shares are of what is possible; widths are over the knee, which is the
 * number of servers, or what is offered by Little's law. */
struct scene_result {
	double share_10s, share_60s; /* served in the first 10 and 60 s after SCENE_AFTER_S */
	double width_mean, width_end;
	int knee, width, reversals; /* `width` is that at the end */
};

static inline double scene_run(struct width_sim *s, double for_s, double *width_sum)
{
	uint64_t served = s->served;
	double until_s = s->now_s + for_s, from_s = s->now_s;

	while (s->now_s < until_s - 1e-9) {
		double part_s = fmin(0.1, until_s - s->now_s);
		sim_run(s, s->now_s + part_s);
		*width_sum += part_s * s->v.width;
	}
	return (double)(s->served - served) / (until_s - from_s);
}

/* A stage that has settled. */
static inline struct width_sim *scene_settled(
    const struct width_policy *policy, const struct side *side, int seed)
{
	static struct width_sim s;

	sim_init(&s, policy, side->servers, side->service_s, side->offered_per_s, (uint64_t)seed);
	s.exponential = side->exponential;
	sim_run(&s, SCENE_SETTLE_S + seed * 0.37);
	s.reversals = 0;
	return &s;
}

/* Begin the scene. Returns false if the scene makes no sense for this side. */
static inline bool scene_change(struct width_sim *s, enum scene_kind kind, const struct side *side)
{
	switch (kind) {
	case SCENE_SLOWER_2:
		s->service_s *= 2;
		break;
	case SCENE_SLOWER_3:
		s->service_s *= 3;
		break;
	case SCENE_BACK:
		s->service_s *= 3;
		sim_run(s, s->now_s + 60);
		s->service_s /= 3;
		break;
	case SCENE_FASTER_3:
		s->service_s /= 3;
		break;
	case SCENE_FEWER:
		s->servers = (side->servers + 2) / 3;
		break;
	case SCENE_MORE:
		s->servers *= 3;
		break;
	case SCENE_STOPS:
		s->stop_from_s = s->now_s;
		s->stop_until_s = s->now_s + 5;
		sim_run(s, s->stop_until_s);
		break;
	case SCENE_ACCEPTS:
		s->accepts = side->servers / 2;
		return s->accepts > 0;
	case SCENE_REFUSES:
		s->refuses = 0.5;
		/* the events that are not refused must still saturate the servers */
		return side->offered_per_s >= 2 * side->servers / side->service_s;
	default:
		break;
	}
	return true;
}

/* Run a scene. Returns NULL if the scene makes no sense for this side. */
static inline struct width_sim *scene_do(const struct width_policy *policy, enum scene_kind kind,
    const struct side *side, int seed, bool trace, struct scene_result *r)
{
	struct width_sim *s = scene_settled(policy, side, seed);
	double after_s = fmax(SCENE_AFTER_S, 3 * side->service_s), unused = 0, sum = 0;

	s->trace = trace;
	if (!scene_change(s, kind, side))
		return NULL;
	double servers = kind == SCENE_ACCEPTS ? s->accepts : s->servers;
	double possible = fmin(servers / s->service_s, s->offered_per_s);
	double for_s = kind == SCENE_STEADY ? 290 : 50;
	s->reversals = 0;
	if (kind != SCENE_STEADY)
		scene_run(s, fmax(after_s, 3 * s->service_s), &unused);
	double first = scene_run(s, 10, &sum);
	double rest = scene_run(s, for_s, &sum);
	double knee = fmin(servers, s->offered_per_s * s->service_s);
	*r = (struct scene_result){.share_10s = first / possible,
	    .share_60s = (10 * first + for_s * rest) / (10 + for_s) / possible,
	    .width_mean = sum / (10 + for_s) / knee,
	    .width_end = s->v.width / knee,
	    .knee = (int)ceil(knee - 1e-9),
	    .width = s->v.width,
	    .reversals = s->reversals};
	return s;
}

#endif
