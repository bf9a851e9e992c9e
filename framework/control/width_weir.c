/* SPDX-License-Identifier: MIT */
/*
 * Width policy `weir`: allows as many events in work as measurably help, and up to a fifth more.
 *
 * By Little's law, a stage with W events in work, each of which takes S, completes X = W / S. As
 * long as the other side (a database, a disk, another server) has capacity to spare, S is constant
 * and X grows with W. Once it is saturated, X is constant and S grows with W: the events queue
 * there, where no policy sees them, instead of here. The *knee* is the width at which the other
 * side is just saturated. It is the X of a saturated other side, times the S of an unsaturated one.
 * While the width is used up and events wait, W is known, and only S has to be measured. (Vegas,
 * Brakmo and Peterson 1995, and BBR, Cardwell et al. 2016, infer the same from round trips. They
 * probe every few round trips, since a packet that is sent too early costs little.)
 *
 * The policy is in one of four phases (-> the phase that follows):
 *
 *   GROW    The width doubles until S grows with it. That gives a first guess of the knee. -> LEVEL
 *   LEVEL   X is measured at this width. -> CHECK
 *   CHECK   The width is lowered until X falls (width_check.c). That gives the knee. -> HOLD
 *           If X falls by as much as the width in the first step, the other side was not saturated.
 *           -> GROW
 *   HOLD    The width is the knee and up to a fifth more, so that S is a little larger than it has
 *           to be, and falls when the other side gains capacity. If S falls: -> GROW. If S grows,
 *           the other side has become slower or smaller: -> LEVEL. Since slow changes go unnoticed,
 *           the knee is checked again soon after growth, and then every WIDTH_HOLD_NS. -> CHECK
 *
 * If less is offered than the other side can serve, GROW ends at a width that is not used up, and
 * the knee stays unknown. The width is then the mean number of events in work plus room for bursts.
 * If S grows, GROW follows, since nothing shows that the other side is saturated.
 *
 * If the other side refuses events, the width is lowered immediately to the number that it accepts.
 * GROW then waits until the width is again what it was before the refusals (width_refused.c).
 *
 * After a change of the width a measurement begins when the events that were in work have ended,
 * since their S belongs to the old width. The same holds after a time without completions, from
 * which nothing is learned. The smallest S (`base`) is forgotten after FLOOR_NS.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/number_text.h"
#include "control/width_state.h"

/* The constants were chosen in virtual time (bench/width_table) unless a reason is given. The mean
 * of N service times has a relative error of 1 / sqrt(N) if they are exponential, and a smaller one
 * if they vary less (`noise`). */

/* GROW. S has grown with the width if it grew by more than the factor GROWN (the geometric mean of
 * 1 and sqrt(2)), and exceeds GROWN by GROW_SURE standard errors. Until then the width doubles,
 * since a width that is too large for one window costs less than one that stays too small. A window
 * in doubt counts as a growth of X if it has at least GROW_LEAST events and twice as many events as
 * the width, and also GROW_DOUBT events or a length of GROW_LONG_NS. */
#define GROW_BY      2.0
#define GROWN        1.19
#define GROW_SURE    2.5
#define GROW_ITEMS   8
#define GROW_LEAST   16
#define GROW_DOUBT   100
#define GROW_LONG_NS NS_PER_S
#define VERIFY_ITEMS 100
#define SAME         1.05
#define BASE_ITEMS   1000
#define FLOOR_NS     (60 * NS_PER_S)
/* If GROW has failed to help more than GROWS times in a row, it waits for GROW_NS. */
#define GROWS      2
#define GROW_NS    (20 * NS_PER_S)
#define FOUND_SAME 1.1
/* BURST: room for bursts, in standard deviations of the number of events in work. A Poisson number
 * exceeds its mean by more than two of them in 2 % of the cases. ENOUGH_TICKS: number of ticks over
 * which the number of events in work must be averaged. */
#define BURST        2
#define ENOUGH_TICKS 5

/* The width exceeds the knee by the share SPARE_LEAST + SPARE_NOISE * noise: the excess must be
 * visible in S, so it is larger with more noise. */
#define SPARE_LEAST 0.08
#define SPARE_NOISE 0.1

/* The other side has stopped if there is no completion for STOPPED service times and STOPPED_NS. */
#define STOPPED    4
#define STOPPED_NS (300 * NS_PER_MS)
#define GAP_NS     (10 * WIDTH_TICK_NS)

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

bool width_may_grow(const struct weir_state *s, const struct width_view *v, int64_t now_ns)
{
	return v->width < v->max && s->refused_ns == 0 && now_ns >= s->grow_ns;
}

void width_set_base(struct weir_state *s, struct mean m, int64_t now_ns)
{
	s->base = m;
	s->base_ns = now_ns;
}

double width_spare(const struct weir_state *s, double knee)
{
	double spare = SPARE_LEAST + SPARE_NOISE * fmin(s->noise, 1);

	return fmax(ceil(knee * (1 + spare) - 0.2), ceil(knee - 0.2) + 1);
}

/* ---- grow ---- */

bool width_grow_on(
    struct weir_state *s, const struct width_view *v, struct mean m, struct width_decision *d)
{
	s->from = v->width;
	return width_step(v, d, v->width * GROW_BY,
	    "%d events at once take %s ms each, and events wait: more are tried", v->width,
	    number_text(NUMBER_ROOM, m.s * 1e3, 3));
}

static void count_grow(struct weir_state *s, bool helped, int64_t now_ns)
{
	s->grows = helped ? 0 : s->grows + 1;
	if (s->grows > GROWS)
		s->grow_ns = now_ns + GROW_NS;
}

/* End GROW, since the other side is saturated. */
static bool grown(struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns,
    struct width_decision *d)
{
	double knee = fmax(1, v->width / m.s * s->base.s);

	count_grow(s, knee > FOUND_SAME * s->start, now_ns);
	if (s->again && s->knee.n > 0 && s->from == s->start && knee < FOUND_SAME * s->from) {
		/* The other side was saturated at this width before the change, too. It serves as
		 * many events at once as before, each of them faster. */
		int before = s->from;
		double base_s = s->base.s;
		s->base = (struct mean){0};
		width_hold(s, now_ns);
		return width_step(v, d, before,
		    "%d events at once take %s ms each instead of %s: %d suffice", v->width,
		    number_text(NUMBER_ROOM, m.s * 1e3, 3),
		    number_text(NUMBER_ROOM, base_s * 1e3, 3), before);
	}
	s->knee = (struct mean){0};
	s->confirmed = false;
	s->helped = (int)ceil(knee - 0.2);
	s->full = (struct mean){.s = m.s / v->width, .n = m.n};
	s->phase = LEVEL;
	s->slower = 0;
	return width_step(v, d, fmin(width_spare(s, knee), v->width),
	    "%d events at once take %s ms each instead of %s: about %.0f suffice", v->width,
	    number_text(NUMBER_ROOM, m.s * 1e3, 3), number_text(NUMBER_ROOM, s->base.s * 1e3, 3),
	    knee);
}

/* End GROW, since the width after the last step is not used up. By Little's law, the `needed` width
 * is X times `base`. If the other side is not `saturated`, this is the mean number of events in
 * work, and with random arrivals the number seldom exceeds its mean by more than BURST standard
 * deviations. It is not certain that the width before the step saturates the other side, so a check
 * follows after GROW_NS. */
static bool grown_enough(struct weir_state *s, const struct width_view *v, double needed,
    bool saturated, int64_t now_ns, struct width_decision *d)
{
	double burst = saturated ? 0 : BURST * sqrt(needed);
	double width = fmin(fmax(s->from, fmax(width_spare(s, needed), needed + burst)), v->width);

	count_grow(s, width > FOUND_SAME * s->start, now_ns);
	if (width > width_spare(s, s->knee.s)) /* more is needed than the knee allows */
		s->knee = (struct mean){0};
	s->confirmed = false;
	width_hold(s, now_ns);
	s->check_ns = now_ns + GROW_NS;
	return width_step(v, d, width, "about %.0f suffice: the width was not used up", needed);
}

/* The first window of GROW, at the width of HOLD, tells whether there was a change. */
static bool grow_first(struct weir_state *s, const struct width_view *v, struct mean m, bool wants,
    int64_t now_ns, struct width_decision *d)
{
	if (s->again && s->ref.n > 0 && m.n < noise_items(s, VERIFY_ITEMS))
		return false;
	bool used = window_end(s, v, m, now_ns);
	double change = s->ref.n > 0 ? log(m.s / s->ref.s) : 0;
	if (s->again && s->ref.n > 0 && (s->slower > 0 ? change : -change) < WIDTH_CHANGE_LEAST / 2)
		return width_hold_again(s, m, now_ns);
	if (!used || !wants)
		return false;
	width_set_base(s, m, now_ns);
	s->start = v->width;
	return width_grow_on(s, v, m, d);
}

static bool grow(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	struct mean m = mean_in_work(s, mean_of(&s->w, v), now_ns);

	if (!window_enough(s, m, fmax(GROW_ITEMS, v->width / 2.0), now_ns))
		return false;
	bool wants = 2 * s->w.waits > s->w.ticks, used = 2 * s->w.used > s->w.ticks;
	if (s->base.n == 0)
		return grow_first(s, v, m, wants, now_ns, d);
	double growth = log(m.s / s->base.s), error = mean_error(s, m, s->base);
	bool stops = growth > log(GROWN) + GROW_SURE * error;
	bool long_enough = m.n >= fmax(GROW_LEAST, 2 * v->width) &&
			   (m.n >= GROW_DOUBT || now_ns - s->w.from_ns >= GROW_LONG_NS);
	if (used && !stops && growth > log(GROWN) - error && !long_enough)
		return false;
	bool saturated = growth > log(GROWN);
	if (!used && !saturated && s->w.ticks < ENOUGH_TICKS)
		return false;
	double needed = s->w.in_work / s->w.ticks * s->base.s / m.s;
	window_end(s, v, m, now_ns);
	if (!used)
		return grown_enough(s, v, needed, saturated, now_ns, d);
	if (stops)
		return grown(s, v, m, now_ns, d);
	if (growth < fmax(log(SAME), error))
		width_set_base(s, mean_pool(s->base, m, BASE_ITEMS), now_ns);
	if (v->width >= v->max)
		width_hold(s, now_ns);
	return wants && v->width < v->max && width_grow_on(s, v, m, d);
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
	switch (s->phase) {
	case GROW:
		return grow(s, v, now_ns, d);
	case LEVEL:
		return width_level(s, v, now_ns, d);
	case CHECK:
		return width_check(s, v, now_ns, d);
	default:
		return width_watch(s, v, now_ns, d);
	}
}

static void forget_floor(struct weir_state *s, int64_t now_ns)
{
	if (s->base.n > 0 && now_ns - s->base_ns > FLOOR_NS)
		s->base = (struct mean){0};
	if (s->ref.n > 0 && now_ns - s->ref_ns > FLOOR_NS && s->phase == HOLD) {
		s->ref = s->last = (struct mean){0};
		s->up = s->down = 0;
	}
}

static void begin_with(struct weir_state *s, int width)
{
	if (s->noise > 0) /* the state comes from another graph (weir_restart) */
		return;
	s->noise = 1;
	s->from = width;
}

/* Take the next part of a step that is spread over time (begin_parts). */
static bool go_on(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	double part = (double)(now_ns - s->part_ns + WIDTH_TICK_NS) / (s->service_s * NS_PER_S);

	s->target = (int)fmin(fmax(s->target, v->min), v->max);
	int to = s->target;
	if (part < 1)
		to = s->part_from + (int)lround(part * (s->target - s->part_from));
	if ((to > v->width) != (s->target > v->width)) /* the bounds have changed */
		to = v->width;
	d->width = (int)fmin(fmax(to, v->min), v->max);
	d->target = s->target;
	d->rule[0] = '\0';
	if (part >= 1)
		s->target = 0;
	window_settle(s, v, now_ns);
	return d->width != v->width;
}

/* Spread a step over a service time. Otherwise the events that the step admits begin together. If
 * service times are equal, they also end together, and so do the events that follow them. */
static void begin_parts(
    struct weir_state *s, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	double part = (double)WIDTH_TICK_NS / (s->service_s * NS_PER_S);

	if (part > 0.5)
		return;
	s->target = d->target;
	s->part_from = v->width;
	s->part_ns = now_ns;
	d->width = v->width + (int)lround(part * (d->target - v->width));
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
	if (s->target > 0)
		return go_on(s, v, now_ns, d);
	bool settles = s->settles;
	if (settles) {
		s->settles = window_settles(s, v, now_ns);
		window_begin(s, v, now_ns);
	}
	if (settles && s->phase != GROW) {
		s->r = s->w;
		return false;
	}
	forget_floor(s, now_ns);
	window_tick(s, v);
	bool moved = width_obey(s, v, now_ns, d), refused = moved;
	if (!moved && !settles)
		moved = decide(s, v, now_ns, d);
	if (!moved)
		return false;
	d->target = d->width;
	if (!refused || d->target > v->width) /* a refusal is obeyed at once */
		begin_parts(s, v, now_ns, d);
	window_settle(s, v, now_ns);
	return true;
}

static void weir_restart(void *state)
{
	struct weir_state *s = state;

	s->started = s->was_stopped = false;
	s->settled = s->last_ended = 0;
	if (s->phase != GROW)
		s->phase = HOLD;
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
		snprintf(buf, size, "%s ms each, %s/s; widening stopped helping at %d",
		    number_text(NUMBER_ROOM, s->service_s * 1e3, 3),
		    number_text(NUMBER_ROOM, s->rate, 4), s->helped);
	else
		snprintf(buf, size, "%s ms each, %s/s",
		    number_text(NUMBER_ROOM, s->service_s * 1e3, 3),
		    number_text(NUMBER_ROOM, s->rate, 4));
}

const struct width_policy width_weir = {
    .name = "weir",
    .help = "as many events in work as measurably raise the throughput",
    .decide = weir_decide,
    .restart = weir_restart,
    .explain = weir_explain,
};
