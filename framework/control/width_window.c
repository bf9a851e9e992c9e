/* SPDX-License-Identifier: MIT */
/* Measures mean service times for the width policy `weir`; see width_weir.c. */
#include <math.h>

#include "base/clock.h"
#include "control/width_state.h"

/* The constants are guesses that were tried in virtual time (tests/unit/control/test_width_weir.c).
 * The mean of N service times has a relative error of 1 / sqrt(N) if they are exponential, and a
 * smaller one if they vary less. */
#define USED       0.9             /* share of the width in work that counts as used up */
#define WINDOW_NS  (10 * NS_PER_S) /* longest window, unless a service takes longer */
#define KNEE_TIMES 2               /* service times that window_enough_for_knee requires */
#define KNEE_NS    (500 * NS_PER_MS)
/* The noise is a mean over about the last 50 windows, and at least NOISE_LEAST. A difference
 * between two windows counts as at most NOISE_MOST standard errors, since a larger one is a change
 * rather than noise. */
#define NOISE_WEIGHT 0.02
#define NOISE_LEAST  0.1
#define NOISE_MOST   3
#define RECENT       0.1 /* weight of a tick in shares of recent ticks: a mean over a second */

struct window window_at(const struct width_view *v, int64_t now_ns)
{
	return (struct window){.from_ns = now_ns,
	    .ended = v->ended,
	    .service_ns = v->service_ns,
	    .refused = v->refused};
}

void window_begin(struct weir_state *s, const struct width_view *v, int64_t now_ns)
{
	s->w = window_at(v, now_ns);
}

void window_settle(struct weir_state *s, const struct width_view *v, int64_t now_ns)
{
	s->settled = v->ended + v->refused + (uint64_t)(v->in_work > 0 ? v->in_work : 0);
	s->settled_ns = now_ns + (int64_t)(s->service_s * NS_PER_S);
	s->settles = true;
	window_begin(s, v, now_ns);
}

bool window_settles(const struct weir_state *s, const struct width_view *v, int64_t now_ns)
{
	return (int64_t)(s->settled - v->ended - v->refused) > 0 || now_ns < s->settled_ns ||
	       v->in_work > v->width;
}

struct mean mean_of(const struct window *w, const struct width_view *v)
{
	double n = (double)width_grown(v->ended, w->ended);
	double sum_s = (double)width_grown(v->service_ns, w->service_ns) / NS_PER_S;

	return (struct mean){.s = n > 0 ? sum_s / n : 0, .n = n};
}

struct mean mean_in_work(const struct weir_state *s, struct mean m, int64_t now_ns)
{
	double length_s = (double)(now_ns - s->w.from_ns) / NS_PER_S;

	if (m.n > 0 && s->w.ticks > 0)
		m.s = fmax(m.s, s->w.in_work / s->w.ticks * length_s / m.n);
	return m;
}

struct mean mean_pool(struct mean a, struct mean b, double n_max)
{
	double n = a.n + b.n;
	double weight = n > n_max ? b.n / n_max : b.n / n;

	weight = weight < 1 ? weight : 1;
	return (struct mean){.s = a.s + weight * (b.s - a.s), .n = n < n_max ? n : n_max};
}

double mean_error(const struct weir_state *s, struct mean a, struct mean b)
{
	return s->noise * sqrt(1 / a.n + 1 / b.n);
}

void noise_learn(struct weir_state *s, struct mean a, struct mean b)
{
	double x = log(a.s / b.s) / sqrt(1 / a.n + 1 / b.n);
	double square = s->noise * s->noise, now = fmin(x * x, NOISE_MOST * NOISE_MOST);
	double weight = fmax(NOISE_WEIGHT, 1.0 / (2 + s->noise_n++));

	s->noise = fmax(sqrt(square + weight * (now - square)), NOISE_LEAST);
}

double noise_items(const struct weir_state *s, double items)
{
	return items * fmax(s->noise * s->noise, NOISE_LEAST);
}

void window_tick(struct weir_state *s, const struct width_view *v)
{
	bool used = v->in_work >= USED * v->width, waits = used && v->queue_length > 0;

	s->w.in_work += v->in_work;
	s->w.ticks++;
	s->w.used += used;
	s->w.waits += waits;
	s->used += RECENT * (used - s->used);
	s->waits += RECENT * (waits - s->waits);
}

/* Whether the width was used up during most of the window. */
static bool used_up(const struct weir_state *s)
{
	return 2 * s->w.used > s->w.ticks;
}

bool window_whole(double length_s, double service_s)
{
	double tick_s = (double)WIDTH_TICK_NS / NS_PER_S;

	return service_s <= tick_s ||
	       (length_s > tick_s && fmod(length_s + 1e-6, service_s) < tick_s);
}

bool window_enough(const struct weir_state *s, struct mean m, double items, int64_t now_ns)
{
	double length_s = (double)(now_ns - s->w.from_ns) / NS_PER_S;

	return m.n > 0 && s->w.ticks > 0 && window_whole(length_s, m.s) &&
	       (m.n >= items || length_s >= fmax((double)WINDOW_NS / NS_PER_S, 4 * m.s));
}

bool window_enough_for_knee(const struct weir_state *s, struct mean m, double items, int64_t now_ns)
{
	double least_ns = fmax(KNEE_TIMES * m.s * NS_PER_S, (double)KNEE_NS);

	return window_enough(s, m, items, now_ns) && (double)(now_ns - s->w.from_ns) >= least_ns;
}

bool window_end(struct weir_state *s, const struct width_view *v, struct mean m, int64_t now_ns)
{
	bool used = used_up(s);

	s->service_s = m.s;
	s->rate = m.n * NS_PER_S / (double)(now_ns - s->w.from_ns);
	window_begin(s, v, now_ns);
	return used;
}
