/* SPDX-License-Identifier: MIT */
/* The state of the width policy `weir`, and the parts of it that several files share; see
 * width_weir.c. */
#ifndef WEIR_CONTROL_WIDTH_STATE_H
#define WEIR_CONTROL_WIDTH_STATE_H

#include <weir/annotate.h>

#include "control/width.h"

/** How long the policy waits for a change before it checks the knee, and for growth after a
 *  refusal. A check changes direction twice, so there are fewer than one change a minute. */
#define WIDTH_HOLD_NS 200000000000LL

/** A smaller change of S, as a logarithm, is not noticed. */
#define WIDTH_CHANGE_LEAST 0.08

enum phase { GROW, LEVEL, CHECK, HOLD };

/* Sums over the ticks of a window. */
struct window {
	int64_t from_ns;
	uint64_t ended, service_ns, refused; /* totals at its start */
	double in_work;                      /* sum over ticks */
	/* ticks; those at which the width was used up; and those at which events waited, too */
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
	struct window w, r;  /* r is for refusals */
	uint64_t settled;    /* value of ended + refused at which the window may begin, */
	int64_t settled_ns;  /* but not earlier than this */
	uint64_t last_ended; /* at the last call, and when it grew */
	int64_t last_ns, moved_ns;
	double rate, service_s; /* X and S of the last window; for people */

	int target;      /* of a step that is not complete, or 0 */
	int part_from;   /* the width before it */
	int64_t part_ns; /* when it began */

	struct mean base; /* S while the other side is not saturated; n = 0 if unknown */
	int64_t base_ns;  /* when it was measured */
	struct mean knee; /* n = 0 if unknown */
	int helped;       /* the knee, for people, or 0 */
	/* HOLD: shares of recent ticks at which the width was used up, and events waited, too */
	double used, waits;
	double noise; /* errors of means over those of exponential times */
	int noise_n;  /* means that it was learned from */

	int from;         /* GROW: the width before this step. LEVEL, CHECK: the width at first */
	int start;        /* GROW: the width at first */
	bool again;       /* GROW: after a change */
	struct mean full; /* CHECK: 1 / X, when saturated, in s */
	int saturated;    /* CHECK: the narrowest width known to be saturated, or 0 */
	int restarts;     /* LEVEL, CHECK: of the window */
	double slower;    /* LEVEL, CHECK, GROW: the growth of S that is examined, or 0 */

	struct mean ref, last; /* HOLD: the S at this width, and in the last window */
	int64_t ref_ns;        /* when it was measured last */
	double up, down;       /* HOLD: sums of CUSUM */
	int64_t check_ns;      /* HOLD: when to check */
	bool confirmed;        /* the knee was checked since GROW */
	int64_t began_ns;      /* CHECK: when it began */
	int grows;             /* GROW has not helped so often in a row */
	int64_t grow_ns;       /* when it may begin again */

	int refused_width, refused_steps; /* the width before refusals, or 0 */
	bool refuses_none, lifts, lifted; /* the width is raised again; the last step did so */
	int64_t refused_ns;               /* the last step because of refusals */
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
/** Whether a window has whole service times: events that take as long as each other may end in
 *  waves. */
bool window_whole(double length_s, double service_s);
/** Whether the window has `items` events, or is long. `m` is its mean so far. */
bool window_enough(const struct weir_state *s, struct mean m, double items, int64_t now_ns);
/** Whether the window is also long enough for the S of one width: exponential times that began at
 *  the step are short at first. */
bool window_enough_for_knee(
    const struct weir_state *s, struct mean m, double items, int64_t now_ns);
/** End the window: note its results for people, and begin the next. Returns whether the width was
 *  used up during most of it. */
bool window_end(struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns);

struct mean mean_of(const struct window *w, const struct width_view *v);
/** The mean S of the window by Little's law, if that is larger: events in work for long have not
 *  ended yet. */
struct mean mean_in_work(const struct weir_state *s, struct mean m, int64_t now_ns);
/** The mean of both; older events count less if there are more than `n_max`. */
struct mean mean_pool(struct mean a, struct mean b, double n_max);
/** Standard error of the logarithm of the ratio of two means. */
double mean_error(const struct weir_state *s, struct mean a, struct mean b);
/** Learn the noise from the means of two windows at the same width. */
void noise_learn(struct weir_state *s, struct mean a, struct mean b);
/** How many events have the mean that is as exact as that of `items` exponential times. */
double noise_items(const struct weir_state *s, double items);

/* ---- width_check.c ---- */

/** Measure X at this width, and then look for the knee below it. */
bool width_level(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);
bool width_check(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);
/** Begin: X is known to be `width` / `m`. */
bool width_check_begin(struct weir_state *s, const struct width_view *v, struct mean m,
    int64_t now_ns, struct width_decision *d);
/** How many events are needed for the knee. */
double width_items(const struct weir_state *s, int width);

/* ---- width_weir.c ---- */

/** Request `width` within the bounds, for the reason `fmt`. Returns whether it is another one. */
bool width_step(const struct width_view *v, struct width_decision *d, double width, const char *fmt,
    ...) WEIR_PRINTF(4, 5);
/** Double the width, since S is `m` at this one. */
bool width_grow_on(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d);
bool width_may_grow(const struct weir_state *s, const struct width_view *v, int64_t now_ns);
void width_set_base(struct weir_state *s, struct mean m, int64_t now_ns);
/** The knee and a little more. */
double width_spare(const struct weir_state *s, double knee);

/* ---- width_hold.c ---- */

void width_hold(struct weir_state *s, int64_t now_ns);
/** Hold on, since S is `m` and has not changed. Returns false. */
bool width_hold_again(struct weir_state *s, struct mean m, int64_t now_ns);
/** Watch S, and begin to find out more if it changes. */
bool width_watch(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);

/* ---- width_refused.c ---- */

/** Lower the width if the other side refuses events, and raise it again. */
bool width_obey(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d);

#endif
