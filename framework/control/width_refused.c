/* SPDX-License-Identifier: MIT */
/* What the width policy `weir` does when the other side refuses events; see width_weir.c. */
#include <math.h>

#include "base/clock.h"
#include "control/width_state.h"

/* These are guesses that were tried in virtual time (tests/unit/control/test_width_weir.c). */
#define REFUSED_ITEMS 32
#define REFUSED_LEAST 0.1
#define REFUSED_FULL  0.8
#define REFUSED_STEPS 3
#define REFUSED_NOTCH 0.9
#define CHECK_NS      (10 * NS_PER_S)
#define LIFT          1.05

static bool ignore(struct weir_state *s, const struct width_view *v, double share, int64_t now_ns,
    struct width_decision *d)
{
	int width = s->refused_width;

	s->refused_width = s->refused_steps = 0;
	s->refused_ns = 0;
	s->lifts = false;
	s->ignore_until_ns = now_ns + WIDTH_HOLD_NS;
	width_hold(s, now_ns);
	s->check_ns = now_ns + CHECK_NS; /* soon, since GROW may only have tried this width */
	return width_step(v, d, width, "the other side refuses %.0f%% at every width", share * 100);
}

static bool lift(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	if (!s->lifts || s->phase != HOLD || 2 * s->w.waits <= s->w.ticks)
		return false;
	if (v->width >= s->refused_width) { /* the other side accepts as many as before */
		s->refused_width = 0;
		s->refused_ns = 0;
		s->lifts = s->lifted = false;
		width_hold(s, now_ns);
		return false;
	}
	s->lifted = true;
	s->from = v->width;
	width_hold(s, now_ns);
	return width_step(v, d, fmax(v->width + 1, v->width * LIFT),
	    "the other side refuses few or none at width %d", v->width);
}

/* The other side accepts X * S events at once (Little's law). If this number is nearly the width in
 * REFUSED_STEPS windows in a row, the width is not the reason why events are refused. */
bool width_obey(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->r, v);
	double refused = (double)width_grown(v->refused, s->r.refused),
	       share = refused / (refused + m.n);
	double length_s = (double)(now_ns - s->r.from_ns) / NS_PER_S;

	if (m.n < fmax(REFUSED_ITEMS, v->width / 2.0) || length_s < m.s ||
	    !window_whole(length_s, m.s))
		return false;
	s->r = window_at(v, now_ns);
	if (s->refused_ns > 0 && now_ns - s->refused_ns > WIDTH_HOLD_NS)
		s->lifts = true;
	if (share <= REFUSED_LEAST)
		return lift(s, v, now_ns, d);
	if (now_ns < s->ignore_until_ns)
		return false;
	if (s->lifted) { /* the raised width is too large again */
		s->lifts = s->lifted = false;
		s->refused_ns = now_ns;
		width_hold(s, now_ns);
		return width_step(v, d, s->from, "the other side refuses %.0f%% at width %d",
		    share * 100, v->width);
	}
	double accepted = m.n / length_s * m.s;
	s->refused_steps = accepted > REFUSED_FULL * v->width ? s->refused_steps + 1 : 0;
	if (s->refused_steps >= REFUSED_STEPS)
		return ignore(s, v, share, now_ns, d);
	if (s->refused_width == 0)
		s->refused_width = v->width;
	s->refused_ns = now_ns;
	s->lifts = true;
	width_hold(s, now_ns);
	s->helped = (int)fmax(round(accepted), 1);
	return width_step(v, d, fmin(fmin(v->width - 1, v->width * REFUSED_NOTCH), accepted),
	    "the other side refuses %.0f%% and accepts about %.0f at once", share * 100, accepted);
}
