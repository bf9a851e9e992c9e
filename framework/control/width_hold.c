/* SPDX-License-Identifier: MIT */
/* How the width policy `weir` notices that the other side has changed; see width_weir.c. */
#include <math.h>

#include "base/clock.h"
#include "control/width_state.h"

#define WINDOW_ITEMS 32
#define REF_LEAST    400
#define REF_ITEMS    30000 /* many, so that a change is noticed before it is part of the mean */
#define REF_WINDOWS  100

/* CUSUM (Page 1954) detects a change of log(S), S being the service time. It sums, over the events,
 * by how much log(S) has moved beyond a drift, and raises an alarm when the sum exceeds a limit.
 * The drift is the share DRIFT of the change to be detected. This change is CHANGE, or follows from
 * the knee (at most CHANGE_MOST). A share of one half would detect a known change soonest, but the
 * change is not known exactly, since the knee is not. The limit is such that noise alone raises an
 * alarm once in ALARM_S seconds. */
#define CHANGE      0.18
#define CHANGE_MOST 0.4
#define DRIFT       0.3
#define ALARM_S     600
#define ALARM_LEAST 20

void width_hold(struct weir_state *s, int64_t now_ns)
{
	s->phase = HOLD;
	s->ref = s->last = (struct mean){0};
	s->slower = s->up = s->down = 0;
	s->used = s->waits = 0;
	s->check_ns = now_ns + WIDTH_HOLD_NS;
}

bool width_hold_again(struct weir_state *s, struct mean m, int64_t now_ns)
{
	int64_t check_ns = s->check_ns;
	struct mean ref = s->ref;

	width_hold(s, now_ns);
	s->check_ns = check_ns;
	s->ref = mean_pool(ref, m, REF_ITEMS);
	return false;
}

/* Return the decrease of log(S) to expect when the other side is no longer saturated. */
static double spare_change(const struct weir_state *s, const struct width_view *v)
{
	double change = s->knee.n > 0 ? log(v->width / s->knee.s) : CHANGE;

	return fmin(fmax(change, WIDTH_CHANGE_LEAST), CHANGE_MOST);
}

/* Without a change, an alarm comes after exp(2 * drift * limit) / (2 * drift^2) events on average,
 * if service times are exponential. */
static bool alarm(const struct weir_state *s, double sum, double drift)
{
	double events = ALARM_S * s->rate;
	double limit = log(fmax(2 * events * drift * drift, ALARM_LEAST)) / (2 * drift);

	return sum > limit * s->noise * s->noise;
}

/* Return the logarithm of the ratio of S at this width to S while the other side is not saturated,
 * increased by `errors` standard errors. */
static double grown_by(const struct weir_state *s, double errors)
{
	return log(s->ref.s / s->base.s) + errors * mean_error(s, s->ref, s->base);
}

/* Whether the other side seems not to be saturated, or nothing is known. */
static bool may_help(const struct weir_state *s, const struct width_view *v)
{
	if (s->base.n == 0)
		return s->knee.n == 0;
	return grown_by(s, 0.5) < spare_change(s, v) / 2;
}

/* Whether nothing shows that the other side was saturated at this width. */
static bool was_offered(const struct weir_state *s, const struct width_view *v)
{
	return s->knee.n == 0 && (s->base.n == 0 || grown_by(s, -1) < spare_change(s, v) / 2);
}

/* Go to `phase`, which finds out what has changed. Returns true. */
static bool examine(struct weir_state *s, enum phase phase)
{
	s->phase = (int)phase;
	if (phase == GROW) {
		s->again = true;
		s->base = (struct mean){0};
	} else {
		s->full = (struct mean){0};
	}
	return true;
}

/* Learn S, and go to another phase if it has changed. If S has grown although the other side was
 * not saturated before, a larger width is tried first, otherwise a smaller one. Returns whether S
 * has changed. */
static bool hold_learn(
    struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns)
{
	double change = s->ref.n > 0 ? log(m.s / s->ref.s) : 0;
	double falls = DRIFT * spare_change(s, v), rises = DRIFT * CHANGE;

	if (s->ref.n >= noise_items(s, REF_LEAST)) {
		s->up = fmax(0, s->up + m.n * (change - rises));
		s->down = fmax(0, s->down + m.n * (-change - falls));
		if (alarm(s, s->down, falls) && width_may_grow(s, v, now_ns))
			return examine(s, GROW);
		if (alarm(s, s->up, rises)) {
			bool grows = was_offered(s, v) && width_may_grow(s, v, now_ns);
			s->slower = 1;
			if (grows || v->width > v->min)
				return examine(s, grows ? GROW : LEVEL);
			s->slower = 0;
		}
	}
	if (s->last.n > 0)
		noise_learn(s, m, s->last);
	s->last = m;
	s->ref_ns = now_ns;
	s->ref = s->ref.n > 0 ? mean_pool(s->ref, m, fmax(REF_ITEMS, REF_WINDOWS * m.n)) : m;
	return false;
}

bool width_watch(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	if (!window_enough(s, m, WINDOW_ITEMS, now_ns))
		return false;
	if (!window_end(s, v, m, now_ns))
		return false;
	if (hold_learn(s, v, m, now_ns)) {
		window_settle(s, v, now_ns);
		return false;
	}
	if (s->ref.n < width_items(s, v->width))
		return false;
	bool helps = may_help(s, v);
	if (s->waits > 0.5 && helps && width_may_grow(s, v, now_ns)) {
		s->phase = GROW;
		s->again = false;
		s->start = v->width;
		if (s->base.n == 0)
			width_set_base(s, s->ref, now_ns);
		return width_grow_on(s, v, s->ref, d);
	}
	if (s->used < 0.5 || (s->waits < 0.5 && helps && s->base.n > 0))
		return false; /* the other side is not saturated, and the width suffices */
	if (now_ns < s->check_ns || v->width <= v->min || s->refused_ns > 0)
		return false;
	s->slower = 0;
	s->full = (struct mean){0};
	return width_check_begin(s, v, s->ref, now_ns, d);
}
