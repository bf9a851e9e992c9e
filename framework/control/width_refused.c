/* SPDX-License-Identifier: MIT */
/* What the width policy `weir` does when the other side refuses events; see width_weir.c. */
#include <math.h>

#include "base/clock.h"
#include "control/width_state.h"

/* These are guesses that were tried in virtual time (tests/unit/control/test_width_weir.c). */
#define REFUSED_ITEMS 64
#define REFUSED_LEAST 0.1
#define REFUSED_RARER 0.7
#define REFUSED_FULL  0.85
#define REFUSED_STEPS 4
#define IGNORE_NS     (60 * NS_PER_S)

/* The other side accepts X * S at once. If it refuses for another reason, that is nearly the width,
 * or fewer in work are refused as often. */
bool width_obey(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->r, v);
	double refused = (double)width_grown(v->refused, s->r.refused),
	       share = refused / (refused + m.n);
	double length_s = (double)(now_ns - s->r.from_ns) / NS_PER_S;

	if (m.n < REFUSED_ITEMS || length_s < m.s)
		return false;
	s->r = window_at(v, now_ns);
	s->refuses_none = share <= REFUSED_LEAST;
	if (share <= REFUSED_LEAST || now_ns < s->ignore_until_ns)
		return false;
	if (s->regains) { /* this was too wide again */
		s->regains = false;
		width_be_steady(s, now_ns);
		return width_step(v, d, s->before, "the other side refuses %.0f%% at width %d",
		    share * 100, v->width);
	}
	double accepted = ceil(m.n / length_s * m.s), width = fmin(v->width - 1, accepted);
	bool same = s->refused_width > 0 && share > REFUSED_RARER * s->refused_share;
	s->refused_steps = same ? s->refused_steps + 1 : 0;
	if (same && (accepted > REFUSED_FULL * v->width || s->refused_steps >= REFUSED_STEPS)) {
		width = s->refused_width;
		s->refused_width = 0;
		s->regains = false;
		s->ignore_until_ns = now_ns + IGNORE_NS;
		width_be_steady(s, now_ns);
		return width_step(v, d, width,
		    "the other side refuses %.0f%%, however many are in work", share * 100);
	}
	if (s->refused_width == 0 || now_ns - s->refused_ns > IGNORE_NS) {
		s->refused_steps = 0;
		s->refused_width = v->width;
	}
	s->refused_share = share;
	s->refused_ns = now_ns;
	s->regains = true;
	s->refuses_none = false;
	width_be_steady(s, now_ns);
	s->helped = (int)width;
	return width_step(v, d, width,
	    "the other side refuses %.0f%% and accepts about %.0f at once", share * 100, accepted);
}
