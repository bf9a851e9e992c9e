/* SPDX-License-Identifier: MIT */
/*
 * How the width policy `weir` finds the knee from above; see width_weir.c.
 *
 * At a width that saturates the other side, the throughput X is measured. Then the width is
 * lowered. Either X stays the same, and the service time S falls in proportion to the width: the
 * smaller width saturates the other side, too. Or X falls, and S is now the service time of an
 * event that does not wait at the other side: the knee is the larger X times this S. If X falls in
 * proportion to the width in the first step, nothing shows that the other side was saturated.
 */
#include <math.h>

#include "base/clock.h"
#include "base/number_text.h"
#include "control/width_state.h"

/* A width of 1.17 knees, the usual one, is lowered to 0.82 knees: far enough below the knee that
 * the two cases differ by more than the error of a mean, and no further, since X is smaller
 * meanwhile. */
#define NARROWER_BY 0.7
/* The ratio (here and below) is the X of the saturated other side divided by the X at this width.
 * It is 1 while the other side is saturated, and otherwise larger: 1.22 after a step from 1.17
 * knees to 0.82, and less if the smaller width was rounded up. */
#define SATURATED 1.08
/* If the knee that a check finds is at least this share of the width before the check, that width
 * may have been below the knee. */
#define UNSATURATED 0.94
/* A width is assumed to exceed the knee by the factor 1 + SPARE, or 1 + 1 / width if that is more;
 * `spare` is the logarithm of this factor. A mean needs ITEMS / spare^2 events: the standard error
 * of the ratio of two means is then a third of `spare`. */
#define ITEMS       20
#define SPARE       0.17
#define ITEMS_LEAST 50
/* Fewer events suffice if the ratio is below SATURATED by SURE standard errors, and not below 1 by
 * SURE_SAME standard errors. In a check that follows a growth of S, they also suffice if the ratio
 * is above SATURATED by SURE_SLOWER standard errors. */
#define SURE        2.5
#define SURE_SAME   1.5
#define SURE_SLOWER 2
/* The logarithm of the ratio can be between 0 (X is the same at both widths) and the logarithm of
 * the ratio of the widths (S is the same). If the logarithm is below this range by more than FASTER
 * and SURE standard errors, or above it by more than OUTSIDE and OUTSIDE_BY standard errors, the
 * other side has changed meanwhile. */
#define FASTER     0.07
#define OUTSIDE    0.1
#define OUTSIDE_BY 3
#define SLOWER     1.06 /* a smaller growth of S is noise */
/* In a window without a change, the mean number of events in work is X * S (Little's law). The
 * measured values may differ by the share STATIONARY or by STATIONARY_SURE standard errors. */
#define STATIONARY      0.1
#define STATIONARY_SURE 3
#define RESTARTS        3
/* Knees are the same if they differ by less than this times their standard error. */
#define SAME_KNEE       2.5
#define KNEE_ITEMS_MOST 4000
/* A check lowers X by up to 30 %. If checks last a twentieth of the time, they cost 1.5 % of X. */
#define CHECK_SHARE    20
#define CHECK_FIRST_NS (10 * NS_PER_S)

double width_items(const struct weir_state *s, int width)
{
	double spare = log(1 + fmax(1.0 / width, SPARE));

	return noise_items(s, ITEMS / (spare * spare));
}

/* Store the knee, which is a mean over about `n` events. A knee that has not changed is averaged
 * with the stored one. */
static void learn_knee(struct weir_state *s, double knee, double n)
{
	struct mean now = {.s = knee, .n = n};

	if (s->knee.n > 0 && fabs(log(knee / s->knee.s)) < SAME_KNEE * mean_error(s, now, s->knee))
		s->knee = mean_pool(s->knee, now, fmax(noise_items(s, KNEE_ITEMS_MOST), n));
	else
		s->knee = now;
	s->helped = (int)ceil(s->knee.s - 0.2);
}

static bool give_up(struct weir_state *s, const struct width_view *v, enum phase phase,
    int64_t now_ns, struct width_decision *d)
{
	int first = s->from;

	width_hold(s, now_ns);
	s->phase = (int)phase;
	s->from = s->start = first;
	s->full = (struct mean){0};
	if (phase == GROW)
		s->base = (struct mean){0};
	return width_step(
	    v, d, first, "back to %d, since something changed during the check", first);
}

static bool narrow(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d)
{
	double width = fmin(v->width - 1, ceil(v->width * NARROWER_BY));

	if (s->slower > 1 && s->saturated > 0 && s->saturated < s->from) {
		/* assume that the other side now serves fewer events at once, each as fast as
		 * before: the knee has then fallen as much as S has grown */
		width = fmin(width, ceil(s->from / s->slower));
		s->slower = 0;
	}
	s->phase = CHECK;
	return width_step(v, d, width, "%d events at once take %s ms each: fewer are tried",
	    v->width, number_text(NUMBER_ROOM, m.s * 1e3, 3));
}

bool width_check_begin(struct weir_state *s, const struct width_view *v, struct mean m,
    int64_t now_ns, struct width_decision *d)
{
	s->from = v->width;
	s->began_ns = now_ns;
	struct mean full = {.s = m.s / v->width, .n = m.n};
	/* whether GROW measured the same X at a larger width, so that this width saturates */
	bool same = s->full.n > 0 && mean_error(s, full, s->full) < OUTSIDE &&
		    log(full.s / s->full.s) < log(SATURATED);
	s->saturated = same ? v->width : 0;
	s->full = full;
	return narrow(s, v, m, d);
}

/* Whether the window agrees with Little's law, which holds if nothing has changed meanwhile. A
 * window that does not agree is begun again, at most RESTARTS times; then returns true. */
static bool stationary(
    struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns)
{
	double length_s = (double)(now_ns - s->w.from_ns) / NS_PER_S;
	double in_work = s->w.in_work / s->w.ticks, by_law = m.n / length_s * m.s;
	double most = fmax(STATIONARY, STATIONARY_SURE * s->noise * sqrt(2 / m.n));

	if (fabs(log(by_law / in_work)) < most || ++s->restarts > RESTARTS) {
		s->restarts = 0;
		return true;
	}
	window_begin(s, v, now_ns);
	return false;
}

bool width_level(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	if (!window_enough_for_knee(s, m, width_items(s, v->width), now_ns) ||
	    !stationary(s, v, m, now_ns))
		return false;
	if (!window_end(s, v, m, now_ns) || v->width <= v->min) {
		width_hold(s, now_ns);
		return false;
	}
	if (s->slower > 0) {
		s->slower = m.s / s->ref.s;
		if (s->slower < SLOWER) /* no change: only noise */
			return width_hold_again(s, m, now_ns);
	}
	return width_check_begin(s, v, m, now_ns, d);
}

/* Schedule the next check. The first check since GROW is soon followed by another, which confirms
 * it (see CHECK_SHARE); the next ones follow after WIDTH_HOLD_NS. */
static void width_check_later(struct weir_state *s, int64_t now_ns)
{
	int64_t soon_ns = CHECK_SHARE * (now_ns - s->began_ns);

	soon_ns = soon_ns > CHECK_FIRST_NS ? soon_ns : CHECK_FIRST_NS;
	s->check_ns = now_ns + (s->confirmed || soon_ns > WIDTH_HOLD_NS ? WIDTH_HOLD_NS : soon_ns);
	if (s->confirmed)
		s->grows = 0;
	s->confirmed = true;
}

/* End the check, or go on with GROW. The other side is not saturated at this width, so the knee is
 * the larger X times this S. */
static bool found(struct weir_state *s, const struct width_view *v, struct mean m, double knee,
    int64_t now_ns, struct width_decision *d)
{
	int first = s->from;

	width_set_base(s, m, now_ns);
	double error = mean_error(s, m, s->full);
	if (s->saturated == 0 && log(knee / first) + error > log(UNSATURATED) && first < v->max &&
	    width_may_grow(s, v, now_ns)) {
		s->phase = GROW;
		s->from = v->width;
		s->start = first;
		s->again = false;
		return width_step(v, d, first * 2.0,
		    "%d events at once take %s ms each, as %d did: more are tried", v->width,
		    number_text(NUMBER_ROOM, m.s * 1e3, 3), first);
	}
	double most = s->saturated > 0 ? s->saturated : first;
	if (s->slower == 0 || s->knee.n == 0 || m.n >= width_items(s, v->width))
		learn_knee(s, fmin(knee, most), 1 / (1 / m.n + 1 / s->full.n));
	width_hold(s, now_ns);
	width_check_later(s, now_ns);
	double width = width_spare(s, s->knee.s);
	return width_step(v, d, width, "%d events at once take %s ms each: about %.0f suffice",
	    v->width, number_text(NUMBER_ROOM, m.s * 1e3, 3), s->knee.s);
}

bool width_check(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	if (!window_enough_for_knee(s, m, noise_items(s, ITEMS_LEAST), now_ns))
		return false;
	double ratio = m.s / (v->width * s->full.s); /* 1 while saturated */
	double error = mean_error(s, m, s->full);
	bool saturated = ratio < SATURATED;
	bool sure = log(ratio / SATURATED) < -SURE * error && log(ratio) > -SURE_SAME * error;
	if (s->slower > 0 && s->knee.n > 0 && log(ratio / SATURATED) > SURE_SLOWER * error)
		/* the other side serves as many events at once as before, but more slowly */
		sure = true;
	if (!sure && !window_enough(s, m, width_items(s, v->width), now_ns))
		return false;
	if (!stationary(s, v, m, now_ns))
		return false;
	int widest = s->saturated > 0 ? s->saturated : s->from;
	if (!window_end(s, v, m, now_ns) || v->width >= s->from) {
		s->slower = 0;
		return give_up(s, v, HOLD, now_ns, d);
	}
	double outside = fmax(OUTSIDE, OUTSIDE_BY * error);
	if (log(ratio) < -fmax(FASTER, SURE * error)) /* X is larger than when saturated */
		return give_up(s, v, GROW, now_ns, d);
	if (log(ratio * v->width / widest) > outside) /* S is larger than at the wider width */
		return give_up(s, v, LEVEL, now_ns, d);
	if (!saturated)
		return found(s, v, m, ratio * v->width, now_ns, d);
	s->full = mean_pool(s->full, (struct mean){.s = m.s / v->width, .n = m.n}, 1e6);
	s->saturated = v->width;
	if (v->width > v->min)
		return narrow(s, v, m, d);
	learn_knee(s, v->width, m.n);
	s->base = (struct mean){0};
	width_hold(s, now_ns);
	width_check_later(s, now_ns);
	return width_step(v, d, width_spare(s, v->width), "%d suffices", v->width);
}
