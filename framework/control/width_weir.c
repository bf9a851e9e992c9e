/* SPDX-License-Identifier: MIT */
/*
 * Width policy `weir`: allows as many events in work as measurably help, and a fifth more.
 *
 * By Little's law, a stage with W events in work, each of which takes S, completes X = W / S. As
 * long as the other side (a database, a disk, another server) has capacity to spare, S is constant
 * and X grows with W. Once it is saturated, X is constant and S grows with W: the events queue
 * there, where no policy sees them, instead of here. So the width at which it is just saturated,
 * the knee, is X when saturated times S when not. While the width is used up and events wait, W is
 * known, and only S has to be measured. (Vegas, Brakmo and Peterson 1995, and BBR, Cardwell et al.
 * 2016, infer the same from round trips. They probe every few round trips, since a packet that is
 * sent too early costs little.)
 *
 *   RAMP    The width doubles until S has grown by more than half as much. That gives a first guess
 *           of the knee: FRESH.
 *   FRESH   S is measured at the new width: PROBE.
 *   PROBE   The width is lowered by NARROWER_BY until S no longer follows. That gives the knee, and
 *           STEADY begins. If S has not followed at all, the other side was not saturated: RAMP.
 *   STEADY  The width is the knee and a fifth more, so that S is larger than it has to be, and falls
 *           when the other side gains capacity. If S changes: CHANGED. Since slow changes go
 *           unnoticed, PROBE follows every WIDTH_HOLD_NS.
 *   CHANGED S is measured again, without the events from before the change. If it is smaller, the
 *           other side has gained capacity: RAMP. If it is larger, the other side has become slower
 *           or smaller: PROBE.
 *
 * If the other side refuses events, the width is lowered at once to the number that it accepts, and
 * growth waits for WIDTH_HOLD_NS (width_refused.c).
 *
 * After a change of the width a measurement begins when the events that were in work have ended,
 * since their S belongs to the old width. The same holds after a time without completions, from
 * which nothing is learned. The smallest S (`base`) is forgotten after FLOOR_NS.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "control/width_state.h"

/* The constants are guesses that were tried in virtual time (tests/unit/control/test_width_weir.c).
 * The mean of N service times has a relative error of 1 / sqrt(N) if they are exponential, and a
 * smaller one if they vary less. */
#define RAMP_BY      2.0
#define RAMP_ITEMS   8
#define RAMP_DOUBT   32
#define RAMP_SURE    1.5 /* in standard errors */
#define WINDOW_ITEMS 32
#define BASE_ITEMS   1000
#define REF_ITEMS    10000 /* many, so that a change is noticed before it is part of the mean */
#define REF_WINDOWS  50
#define SPARE        1.2
#define SATURATED    1.08 /* estimated knee over the width, if that is above it */
#define UNSATURATED  0.94 /* estimated knee over the width before, if that was below it */
#define UNUSED       1.06 /* S over the smallest S, if the other side is not saturated */
#define SAME         1.05
#define FASTER       0.8 /* S over the smallest S, if that is of before a change */
#define NARROWER_BY  0.7
#define PROBE_GROWN  1.4
#define KNEE_ITEMS   500
/* fewer events suffice if the estimated knee over the width is outside of these */
#define PROBE_ITEMS      100
#define PROBE_CLEAR_LOW  0.98
#define PROBE_CLEAR_HIGH 1.35
#define FLOOR_NS         (60 * NS_PER_S)
#define STOPPED          4 /* service times without a completion */
#define STOPPED_NS       (300 * NS_PER_MS)
#define GAP_NS           (10 * WIDTH_TICK_NS)
#define REGAIN           1.05

/* A change of S by the logarithm 2 * DRIFT is noticed after about ALARM / DRIFT exponential times
 * (CUSUM, Page 1954), and after fewer if they vary less. Without a change, the mean time to a false
 * alarm is exp(2 * DRIFT * ALARM) / DRIFT^2 / 2 times, here 50,000. */
#define DRIFT        0.09
#define ALARM        37
#define NOISE_WEIGHT 0.1
#define NOISE_LEAST  0.1
#define NOISE_MOST   3

/* ---- steps ---- */

bool width_step(
    const struct width_view *v, struct width_decision *d, double width, const char *fmt, ...)
{
	va_list ap;

	width = fmin(fmax(round(width), v->min), v->max);
	d->width = (int)width;
	va_start(ap, fmt);
	vsnprintf(d->rule, sizeof(d->rule), fmt, ap);
	va_end(ap);
	return d->width != v->width;
}

static void enter(struct weir_state *s, enum phase phase, const struct width_view *v, struct mean m)
{
	s->phase = (int)phase;
	s->before = v->width;
	s->was = m;
}

void width_be_steady(struct weir_state *s, int64_t now_ns)
{
	s->phase = STEADY;
	s->ref = (struct mean){0};
	s->slower = s->up = s->down = 0;
	s->checked = false;
	s->hold_until_ns = now_ns + WIDTH_HOLD_NS;
}

/* Whether the width may grow: the other side has not refused events lately. */
static bool may_grow(const struct weir_state *s, const struct width_view *v, int64_t now_ns)
{
	return v->width < v->max && (s->refused_ns == 0 || now_ns - s->refused_ns > WIDTH_HOLD_NS);
}

static void set_base(struct weir_state *s, struct mean m, int64_t now_ns)
{
	s->base = m;
	s->base_ns = now_ns;
}

static double spare(double knee)
{
	return fmax(ceil(knee * SPARE - 0.2), 2);
}

/* How much of the last step S has followed: 0 if it is as before, 1 if X is as before. */
static double followed(const struct weir_state *s, const struct width_view *v, struct mean m)
{
	return log(m.s / s->was.s) / log((double)v->width / s->before);
}

/* ---- ramp ---- */

static bool ramp_on(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d)
{
	enter(s, RAMP, v, m);
	return width_step(v, d, v->width * RAMP_BY,
	    "%d at once take %.3g ms, and events wait: more are tried", v->width, m.s * 1e3);
}

static bool ramp_begin(struct weir_state *s, const struct width_view *v, struct mean m,
    int64_t now_ns, struct width_decision *d)
{
	s->first = v->width;
	set_base(s, m, now_ns);
	return ramp_on(s, v, m, d);
}

static bool ramp(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	if (!window_enough(s, m, fmax(RAMP_ITEMS, v->width / 2.0), now_ns))
		return false;
	bool stepped = s->was.n > 0 && v->width > s->before;
	double in_work = s->w.in_work / s->w.ticks;
	bool wants = 2 * s->w.waits > s->w.ticks;
	if (!window_end(s, v, m, now_ns)) {
		if (!stepped || in_work > s->before)
			return false;
		/* they are not needed */
		int before = s->before;
		width_be_steady(s, now_ns);
		return width_step(v, d, before, "%d suffice: fewer events wait", before);
	}
	if (s->base.n == 0 || m.s < FASTER * s->base.s)
		set_base(s, m, now_ns);
	else if (log(m.s / s->base.s) < fmax(log(SAME), s->noise * mean_error(m, s->base)))
		set_base(s, mean_pool(s->base, m, BASE_ITEMS), now_ns);
	double sure = stepped ? RAMP_SURE * s->noise * mean_error(m, s->was) : 0;
	bool grew = stepped && followed(s, v, m) >= 0.5 && log(m.s / s->was.s) > sure;
	if (grew && m.n < RAMP_DOUBT && !s->doubt) { /* once more */
		s->doubt = true;
		return false;
	}
	s->doubt = false;
	if (!grew && !wants)
		return false;
	if (!grew) {
		if (v->width >= v->max) {
			width_be_steady(s, now_ns);
			return false;
		}
		return ramp_on(s, v, m, d);
	}
	double knee = fmax(1, v->width / m.s * s->base.s);
	s->helped = (int)ceil(knee - 0.2);
	s->phase = FRESH;
	return width_step(v, d, fmin(spare(knee), v->width),
	    "%d at once take %.3g ms, not %.3g: about %.0f suffice", v->width, m.s * 1e3,
	    s->base.s * 1e3, knee);
}

/* ---- probe ---- */

static bool narrow(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d)
{
	bool goes_on = s->phase == PROBE;

	s->probes = goes_on ? s->probes + 1 : 0;
	s->probe_first = goes_on ? s->probe_first : v->width;
	s->probe_rate = fmax(goes_on ? s->probe_rate : 0, v->width / m.s);
	enter(s, PROBE, v, m);
	return width_step(v, d, fmin(v->width - 1, ceil(v->width * NARROWER_BY)),
	    "%d at once take %.3g ms: fewer are tried", v->width, m.s * 1e3);
}

static bool fewer(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d)
{
	double width = fmax(ceil(s->first / s->slower), 1);

	s->slower = 0;
	s->phase = FRESH;
	return width_step(v, d, fmin(width, v->width),
	    "%d at once take %.3g ms, not %.3g: the other side serves fewer", v->width, m.s * 1e3,
	    s->was.s * 1e3);
}

/* The other side was not saturated at the width before the step. */
static bool ramp_again(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d)
{
	int before = s->before;

	s->phase = RAMP;
	s->was = (struct mean){0};
	return width_step(v, d, before * RAMP_BY,
	    "%d at once take %.3g ms, as %d did: more are tried", v->width, m.s * 1e3, before);
}

static bool probe(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	double knee = fmin(s->probe_rate * m.s, s->probe_first);
	bool clear = knee < PROBE_CLEAR_LOW * v->width || knee > PROBE_CLEAR_HIGH * v->width;
	if (!window_enough_for_knee(s, m, clear ? PROBE_ITEMS : KNEE_ITEMS, now_ns))
		return false;
	bool changed = v->width >= s->before;
	if (!window_end(s, v, m, now_ns) || changed) {
		width_be_steady(s, now_ns);
		return false;
	}
	if (m.s > PROBE_GROWN * s->was.s) { /* it has become slower meanwhile */
		width_be_steady(s, now_ns);
		s->base = (struct mean){0};
		s->hold_until_ns = now_ns;
		return width_step(v, d, s->before,
		    "%d at once take %.3g ms, not %.3g: a change meanwhile", v->width, m.s * 1e3,
		    s->was.s * 1e3);
	}
	bool saturated = knee < SATURATED * v->width;
	if (saturated && s->slower > 0 &&
	    s->probes > 0) /* it serves fewer at once, as fast as before */
		return fewer(s, v, m, d);
	if (saturated && v->width > v->min)
		return narrow(s, v, m, d);
	set_base(s, m, now_ns);
	if (knee > UNSATURATED * s->before && s->probes == 0 && s->slower == 0 &&
	    may_grow(s, v, now_ns))
		return ramp_again(s, v, m, d);
	knee = saturated ? v->width : knee;
	s->helped = (int)ceil(knee - 0.2);
	width_be_steady(s, now_ns);
	return width_step(v, d, spare(knee), "%d at once take %.3g ms: about %.0f suffice",
	    v->width, m.s * 1e3, knee);
}

static bool fresh(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	if (!window_enough_for_knee(s, m, KNEE_ITEMS, now_ns) || !window_end(s, v, m, now_ns))
		return false;
	if (v->width > v->min)
		return narrow(s, v, m, d);
	width_be_steady(s, now_ns);
	return false;
}

/* ---- steady ---- */

/* `x` is the difference of two means in standard errors of exponential times. A large one is a
 * change rather than noise. */
static void learn_noise(struct weir_state *s, double x)
{
	double square = s->noise * s->noise, now = fmin(x * x, NOISE_MOST * NOISE_MOST);

	s->noise = fmax(sqrt(square + NOISE_WEIGHT * (now - square)), NOISE_LEAST);
}

static bool steady(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v);

	if (!window_enough(s, m, WINDOW_ITEMS, now_ns) || !window_end(s, v, m, now_ns))
		return false;
	if (s->regains && s->refuses_none) { /* up to where it refuses */
		s->refuses_none = false;
		s->before = v->width;
		return width_step(v, d, fmax(v->width + 1, v->width * REGAIN),
		    "the other side refuses none at width %d", v->width);
	}
	double change = s->ref.n > 0 ? log(m.s / s->ref.s) : 0;
	double alarm = ALARM * s->noise * s->noise;
	s->up = fmax(0, s->up + m.n * (change - DRIFT));
	s->down = fmax(0, s->down + m.n * (-change - DRIFT));
	bool sure = s->ref.n >= 2 * WINDOW_ITEMS;
	if (sure &&
	    ((s->down > alarm && may_grow(s, v, now_ns)) || (s->up > alarm && v->width > v->min))) {
		s->phase = CHANGED;
		window_settle(s, v, now_ns);
		return false;
	}
	if (s->ref.n > 0)
		learn_noise(s, change / mean_error(m, s->ref));
	s->ref = s->ref.n > 0 ? mean_pool(s->ref, m, fmax(REF_ITEMS, REF_WINDOWS * m.n)) : m;
	if (!s->checked && s->base.n > 0 && may_grow(s, v, now_ns) &&
	    s->ref.n >= window_items(s, KNEE_ITEMS)) {
		s->checked = true;
		if (s->ref.s < UNUSED * s->base.s)
			return ramp_begin(s, v, s->ref, now_ns, d);
	}
	if (now_ns < s->hold_until_ns || v->width <= v->min ||
	    s->ref.n < window_items(s, KNEE_ITEMS) / 2)
		return false;
	return narrow(s, v, s->ref, d);
}

static bool changed(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_of(&s->w, v), ref = s->ref;

	if (!window_enough_for_knee(s, m, KNEE_ITEMS, now_ns))
		return false;
	bool used = window_end(s, v, m, now_ns);
	int64_t hold_until_ns = s->hold_until_ns;
	width_be_steady(s, now_ns);
	s->hold_until_ns = hold_until_ns;
	s->ref = m;
	if (used && log(m.s / ref.s) < -DRIFT / 2)
		return ramp_begin(s, v, m, now_ns, d);
	if (!used || log(m.s / ref.s) < DRIFT / 2)
		return false;
	s->first = v->width;
	s->slower = m.s / ref.s;
	return narrow(s, v, m, d);
}

/* ---- the policy ---- */

/* Whether there have been no completions for so long that the other side must have stopped. */
static bool is_stopped(struct weir_state *s, const struct width_view *v, int64_t now_ns)
{
	double long_ns = fmax(STOPPED * s->service_s * NS_PER_S, (double)STOPPED_NS);

	return s->service_s > 0 && v->in_work > 0 && (double)(now_ns - s->moved_ns) > long_ns;
}

static bool decide(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	if (width_obey(s, v, now_ns, d))
		return true;
	switch (s->phase) {
	case RAMP:
		return ramp(s, v, now_ns, d);
	case FRESH:
		return fresh(s, v, now_ns, d);
	case CHANGED:
		return changed(s, v, now_ns, d);
	case PROBE:
		return probe(s, v, now_ns, d);
	default:
		return steady(s, v, now_ns, d);
	}
}

static void forget_floor(struct weir_state *s, int64_t now_ns)
{
	if (s->base.n > 0 && now_ns - s->base_ns > FLOOR_NS && s->phase != RAMP)
		s->base = (struct mean){0};
}

static void begin_with(struct weir_state *s, int width)
{
	if (s->noise > 0) /* continued in another graph */
		return;
	s->noise = 1;
	s->before = s->first = width;
}

static bool weir_decide(
    void *state, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct weir_state *s = state;
	uint64_t ended = width_grown(v->ended, s->last_ended);
	bool first = !s->started, gap = first || now_ns - s->last_ns > GAP_NS;

	s->last_ns = now_ns;
	s->last_ended = v->ended;
	s->started = true;
	if (first)
		begin_with(s, v->width);
	if (gap) {
		s->moved_ns = now_ns;
		window_begin(s, v, now_ns);
		s->r = s->w;
		return false;
	}
	if (ended == 0) {
		s->was_stopped |= is_stopped(s, v, now_ns);
	} else {
		s->moved_ns = now_ns;
	}
	if (s->was_stopped) {
		s->was_stopped = ended == 0;
		window_settle(s, v, now_ns);
		return false;
	}
	if (window_settles(s, v, now_ns)) {
		window_begin(s, v, now_ns);
		s->r = s->w;
		return false;
	}
	forget_floor(s, now_ns);
	window_tick(s, v);
	bool moved = decide(s, v, now_ns, d);
	if (moved)
		window_settle(s, v, now_ns);
	return moved;
}

static void weir_restart(void *state)
{
	struct weir_state *s = state;

	s->started = s->was_stopped = false;
	s->settled = s->last_ended = 0;
	if (s->phase != RAMP)
		s->phase = STEADY;
	s->up = s->down = 0;
	s->ref = (struct mean){0};
}

static void weir_explain(const void *state, char *buf, size_t size)
{
	const struct weir_state *s = state;

	buf[0] = '\0';
	if (s->service_s <= 0)
		return;
	if (s->helped > 0)
		snprintf(buf, size, "%.3g ms each, %.0f/s; widening stopped helping at %d",
		    s->service_s * 1e3, s->rate, s->helped);
	else
		snprintf(buf, size, "%.3g ms each, %.0f/s", s->service_s * 1e3, s->rate);
}

const struct width_policy width_weir = {
    .name = "weir",
    .help = "as many events in work as measurably help",
    .decide = weir_decide,
    .restart = weir_restart,
    .explain = weir_explain,
};
