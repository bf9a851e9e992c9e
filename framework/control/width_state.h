/* SPDX-License-Identifier: MIT */
/* The state of the width policy `weir`, and the parts of it that several files share; see
 * width_weir.c. */
#ifndef WEIR_CONTROL_WIDTH_STATE_H
#define WEIR_CONTROL_WIDTH_STATE_H

#include <weir/annotate.h>

#include "control/width.h"

/** How long the policy waits for a change before it probes, and for growth after a refusal. A guess:
 *  with two changes of direction in a probe, fewer than one a minute. */
#define WIDTH_HOLD_NS 200000000000LL

enum phase { RAMP, FRESH, STEADY, CHANGED, PROBE };

/* Sums over the ticks of a window. */
struct window {
	int64_t from_ns;
	uint64_t ended, service_ns, refused; /* totals at its start */
	double in_work;                      /* sum over ticks */
	/* ticks; those at which the width was used up; and those at which events waited, too */
	int ticks, used, waits;
};

/* A mean service time over `n` events. */
struct mean {
	double s, n;
};

struct weir_state {
	bool started, was_stopped, regains, refuses_none, doubt, checked;
	int phase;
	struct window w, r;  /* r is for refusals */
	uint64_t settled;    /* value of ended + refused at which the window may begin, */
	int64_t settled_ns;  /* but not earlier than this */
	uint64_t last_ended; /* at the last call, and when it grew */
	int64_t last_ns, moved_ns;
	struct mean base, ref;  /* the smallest S; the S at this width */
	int64_t base_ns;        /* when `base` was measured */
	double rate, service_s; /* X and S of the last window; for people */
	int before;             /* the width before a step, and S then */
	struct mean was;
	/* steps of PROBE before this one, the width before them, and the largest X since */
	int probes, probe_first;
	double probe_rate;
	int first;       /* the width before the ramp */
	double noise;    /* errors of means over those of exponential times */
	double up, down; /* sums of CUSUM */
	double slower;   /* the growth of S that PROBE examines, or 0 */
	int64_t hold_until_ns;
	int helped; /* the width at which widening stopped helping, or 0 */
	int refused_steps, refused_width;
	double refused_share;
	int64_t refused_ns; /* the last step because of refusals */
	int64_t ignore_until_ns;
};

_Static_assert(sizeof(struct weir_state) <= WIDTH_STATE_MAX, "fits the contract");

/** The growth of a total; 0 if it has decreased. */
static inline uint64_t width_grown(uint64_t now, uint64_t then)
{
	return (int64_t)(now - then) > 0 ? now - then : 0;
}

/* ---- width_window.c ---- */

struct window window_at(const struct width_view *v, int64_t now_ns);
void window_begin(struct weir_state *s, const struct width_view *v, int64_t now_ns);
/** Begin a window when all events that are now in work have ended. */
void window_settle(struct weir_state *s, const struct width_view *v, int64_t now_ns);
bool window_settles(const struct weir_state *s, const struct width_view *v, int64_t now_ns);
/** Note what is in work at this tick. */
void window_tick(struct weir_state *s, const struct width_view *v);
/** Whether the window has `items` events, or is long. `m` is its mean so far. */
bool window_enough(const struct weir_state *s, struct mean m, double items, int64_t now_ns);
/** Whether the window is long enough for the S of one width: exponential times that began at the
 *  step are short at first. */
bool window_enough_for_knee(
    const struct weir_state *s, struct mean m, double items, int64_t now_ns);
/** End the window: note its results for people, and begin the next. Returns whether the width was
 *  used up during most of it. */
bool window_end(struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns);
/** Number of events whose mean is as exact as that of `items` exponential times. */
double window_items(const struct weir_state *s, double items);

struct mean mean_of(const struct window *w, const struct width_view *v);
/** The mean of both; older events count less if there are more than `n_max`. */
struct mean mean_pool(struct mean a, struct mean b, double n_max);
/** Standard error of the logarithm of the ratio of two means of exponential times. */
double mean_error(struct mean a, struct mean b);

/* ---- width_weir.c ---- */

/** Request `width` within the bounds, for the reason `fmt`. Returns whether it is another one. */
bool width_step(const struct width_view *v, struct width_decision *d, double width, const char *fmt,
    ...) WEIR_PRINTF(4, 5);
void width_be_steady(struct weir_state *s, int64_t now_ns);

/* ---- width_refused.c ---- */

/** Lower the width if the other side refuses events. */
bool width_obey(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);

#endif
