/* SPDX-License-Identifier: MIT */
/* The state of the width policy `weir`, and functions that its files share. The head of
 * width_weir.c explains X (throughput), S (mean service time), the knee, and the phases GROW,
 * LEVEL, CHECK and HOLD. */
#ifndef WEIR_CONTROL_WIDTH_STATE_H
#define WEIR_CONTROL_WIDTH_STATE_H

#include <weir/annotate.h>

#include "control/width.h"

/** Time between two checks of the knee. Also the time after which the width is raised again if
 *  raising it has caused refusals. A check changes the direction of the width twice; at this
 *  interval, checks cause less than one such change a minute. */
#define WIDTH_HOLD_NS 200000000000LL

/** Changes of log(S) that are smaller than this are not noticed. */
#define WIDTH_CHANGE_LEAST 0.08

enum phase { GROW, LEVEL, CHECK, HOLD };

/* Sums over the ticks of a window. */
struct window {
	int64_t from_ns;
	uint64_t ended, service_ns, refused; /* totals at the start of the window */
	double in_work;                      /* sum over ticks */
	/* number of ticks; number of those at which the width was used up; and number of those at
	 * which, in addition, events waited */
	int ticks, used, waits;
};

/* A mean over `n` events. */
struct mean {
	double s, n;
};

struct weir_state {
	bool started, was_stopped;
	bool settles; /* the window begins when the events now in work have ended */
	int phase;
	struct window w, r;     /* w measures S, r counts refusals */
	uint64_t settled;       /* the window begins when ended + refused reaches this number */
	int64_t settled_ns;     /* the window does not begin before this time */
	uint64_t last_ended;    /* the total `ended` at the last call */
	int64_t last_ns;        /* time of the last call */
	int64_t moved_ns;       /* time at which the total `ended` last grew */
	double rate, service_s; /* X and S of the last window; shown to operators (explain) */

	int target;      /* target of the step in progress, or 0; see begin_parts */
	int part_from;   /* width before that step */
	int64_t part_ns; /* start of that step */

	struct mean base; /* S while the other side is not saturated; n = 0 if unknown */
	int64_t base_ns;  /* time at which `base` was measured */
	struct mean knee; /* n = 0 if unknown */
	int helped;       /* the knee, or 0; shown to operators */
	/* HOLD: the share of recent ticks at which the width was used up (used), and the share at
	 * which it was used up while events waited (waits) */
	double used, waits;
	double noise; /* error of a mean of S, relative to its error if times were exponential */
	int noise_n;  /* number of means that `noise` was learned from */

	int from;         /* GROW: width before this step. LEVEL, CHECK: width before the check */
	int start;        /* GROW: width before the first step */
	bool again;       /* GROW was begun because S fell */
	struct mean full; /* CHECK: 1 / X in s, measured while the other side was saturated */
	int saturated;    /* CHECK: the smallest width known to be saturated, or 0 */
	int restarts;     /* LEVEL, CHECK: number of restarts of the window */
	/* LEVEL, CHECK, GROW: factor by which S has grown, 1 until measured, if this growth is
	 * being examined; otherwise 0 */
	double slower;

	struct mean ref, last; /* HOLD: S at this width, and S in the last window */
	int64_t ref_ns;        /* time at which `ref` was measured last */
	double up, down;       /* HOLD: sums of CUSUM */
	int64_t check_ns;      /* HOLD: time of the next check */
	bool confirmed;        /* the knee was checked since GROW */
	int64_t began_ns;      /* CHECK: time at which it began */
	int grows;             /* number of times in a row that GROW has not helped */
	int64_t grow_ns;       /* time from which GROW may begin again */

	int refused_width;       /* width before refusals, or 0 */
	int refused_steps;       /* windows in a row in which nearly the whole width was accepted */
	bool lifts;              /* the width may be raised again towards refused_width */
	bool lifted;             /* the width was raised since the last refusals */
	int64_t refused_ns;      /* time of the last step because of refusals, or 0 */
	int64_t ignore_until_ns; /* refusals are ignored until this time */
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
/** Let a window begin once the events now in work have ended, after one service time at least. */
void window_settle(struct weir_state *s, const struct width_view *v, int64_t now_ns);
bool window_settles(const struct weir_state *s, const struct width_view *v, int64_t now_ns);
/** Add the number of events in work at this tick to the window. */
void window_tick(struct weir_state *s, const struct width_view *v);
/** Whether the length of a window is a whole number of service times, or service times are shorter
 *  than a tick. Other windows are biased if events of equal length end in waves. */
bool window_whole(double length_s, double service_s);
/** Whether the window has `items` events, or is long. `m` is its mean so far. */
bool window_enough(const struct weir_state *s, struct mean m, double items, int64_t now_ns);
/** Whether window_enough holds, and the window is so long that its mean is the S of the width. Of
 *  the events that begin at a step, the short ones end first, so an early mean is too small. */
bool window_enough_for_knee(
    const struct weir_state *s, struct mean m, double items, int64_t now_ns);
/** End the window: record its results, which are shown to operators, and begin the next. Returns
 *  whether the width was used up during most of it. */
bool window_end(struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns);

struct mean mean_of(const struct window *w, const struct width_view *v);
/** Return `m`, or the mean S of the window by Little's law if that is larger: `m` lacks the long
 *  events that have not ended yet. */
struct mean mean_in_work(const struct weir_state *s, struct mean m, int64_t now_ns);
/** The mean of both; older events count less if there are more than `n_max`. */
struct mean mean_pool(struct mean a, struct mean b, double n_max);
/** Standard error of the logarithm of the ratio of two means. */
double mean_error(const struct weir_state *s, struct mean a, struct mean b);
/** Learn the noise from the means of two windows at the same width. */
void noise_learn(struct weir_state *s, struct mean a, struct mean b);
/** Return the number of events whose mean is as exact as the mean of `items` exponential times. */
double noise_items(const struct weir_state *s, double items);

/* ---- width_check.c ---- */

/** Measure X at this width, and then look for the knee below it. */
bool width_level(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);
bool width_check(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);
/** Begin a check. `m` is the mean S at the current width, so X is the width divided by it. */
bool width_check_begin(struct weir_state *s, const struct width_view *v, struct mean m,
    int64_t now_ns, struct width_decision *d);
/** Return the number of events that a mean needs to find the knee. */
double width_items(const struct weir_state *s, int width);

/* ---- width_weir.c ---- */

/** Request `width` within the bounds, for the reason `fmt`. Returns whether it differs from the
 *  current width. */
bool width_step(const struct width_view *v, struct width_decision *d, double width, const char *fmt,
    ...) WEIR_PRINTF(4, 5);
/** Take a step of GROW, which doubles the width. S is `m` at the present width. */
bool width_grow_on(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d);
bool width_may_grow(const struct weir_state *s, const struct width_view *v, int64_t now_ns);
void width_set_base(struct weir_state *s, struct mean m, int64_t now_ns);
/** Return the width to set for this knee: a little more than the knee. */
double width_spare(const struct weir_state *s, double knee);

/* ---- width_hold.c ---- */

void width_hold(struct weir_state *s, int64_t now_ns);
/** Continue HOLD, since S is `m` and has not changed. Returns false. */
bool width_hold_again(struct weir_state *s, struct mean m, int64_t now_ns);
/** Watch S in HOLD, and go to another phase if it changes. */
bool width_watch(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);

/* ---- width_refused.c ---- */

/** Lower the width if the other side refuses events, and later raise it again. */
bool width_obey(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);

#endif
