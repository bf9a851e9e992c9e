/* SPDX-License-Identifier: MIT */
/*
 * Batch policy `weir`: the largest batch that an eighth of the objective has room for, where batches
 * pay at all (overload.md 3.6; cohorts: Larus and Parkes 2002).
 *
 *   time of a call   S(b) = a + c * b      a once per call, c per event
 *   cap              (slo / 8 - a) / c, between 1 and max
 *   off (cap 1)      when a is under 5 % of what a call with one event costs, hand-over included
 *
 * a and c are learned by recursive least squares with forgetting 0.98 from the means of windows of
 * 250 ms: a line through means is the line through the calls. Throughput is not compared, so the
 * cap can not follow the arrivals, which is what makes SEDA's controller oscillate.
 *
 * While all calls have the same size nothing tells a from c: the estimate then splits the time in a
 * way that is right for this size, the bound on the covariance keeps it from growing for ever, and
 * the first batch of another size settles it. Time is in microseconds inside, to keep the two
 * unknowns of like size.
 *
 * Changes below a fifth are not worth one, but for those to the ends of the range.
 */
#include "control/batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

/* overload.md 3.6 and 3.7. */
#define WINDOW_NS  (250 * NS_PER_MS)
#define FORGETTING 0.98
#define SLO_SHARE  0.125
#define OFF_RATIO  0.05
#define CHANGE     0.2

/* How unsure of a and c it is at first, and at most: guess, a thousand times a variance of 1 us^2, so
 * that the first samples count and one odd sample after a quiet hour does not. */
#define UNSURE 1e3

/* Smallest c, 1 ns: a handler that does nothing still moves a pointer. */
#define C_MIN_US 1e-3

struct weir_state {
	bool started;
	int64_t window_ns;
	uint64_t batches, items, busy_ns; /* at the start of the window */
	double a_us, c_us;
	double p_aa, p_ac, p_cc; /* covariance, up to the noise */
};

_Static_assert(sizeof(struct weir_state) <= BATCH_STATE_MAX, "fits the contract");

/* One sample: calls of `size` events took `took_us`. The textbook step (Ljung, System
 * Identification, 11.2) with x = (1, size). */
static void learn(struct weir_state *s, double size, double took_us)
{
	double px_a = s->p_aa + s->p_ac * size, px_c = s->p_ac + s->p_cc * size;
	double weight = FORGETTING + px_a + px_c * size;
	double error = took_us - (s->a_us + s->c_us * size);

	s->a_us += px_a / weight * error;
	s->c_us += px_c / weight * error;
	s->p_aa = (s->p_aa - px_a * px_a / weight) / FORGETTING;
	s->p_ac = (s->p_ac - px_a * px_c / weight) / FORGETTING;
	s->p_cc = (s->p_cc - px_c * px_c / weight) / FORGETTING;
	double most = fmax(s->p_aa, s->p_cc);
	if (most > UNSURE) {
		s->p_aa *= UNSURE / most;
		s->p_ac *= UNSURE / most;
		s->p_cc *= UNSURE / most;
	}
}

/* False: too little happened. */
static bool measure(struct weir_state *s, const struct batch_view *v, int64_t now_ns)
{
	int64_t batches = (int64_t)(v->batches - s->batches);
	int64_t items = (int64_t)(v->items - s->items);
	int64_t busy_ns = (int64_t)(v->busy_ns - s->busy_ns);

	if (now_ns - s->window_ns < WINDOW_NS || batches <= 0 || items < batches || busy_ns < 0)
		return false;
	learn(s, (double)items / (double)batches, (double)busy_ns / (double)batches / NS_PER_US);
	s->window_ns = now_ns;
	s->batches = v->batches;
	s->items = v->items;
	s->busy_ns = v->busy_ns;
	return true;
}

static bool worth_it(const struct batch_view *v, int cap)
{
	if (cap == v->cap)
		return false;
	return cap == 1 || cap == v->max || abs(cap - v->cap) >= CHANGE * v->cap;
}

static bool weir_decide(
    void *state, const struct batch_view *v, int64_t now_ns, struct batch_decision *d)
{
	struct weir_state *s = state;

	if (!s->started) {
		*s = (struct weir_state){.started = true,
		    .window_ns = now_ns,
		    .batches = v->batches,
		    .items = v->items,
		    .busy_ns = v->busy_ns,
		    .p_aa = UNSURE,
		    .p_cc = UNSURE};
		return false;
	}
	if (!measure(s, v, now_ns))
		return false;
	double a = fmax(s->a_us, 0), c = fmax(s->c_us, C_MIN_US);
	double once = a + (double)v->fixed_ns / NS_PER_US;
	double room = floor((SLO_SHARE * (double)v->slo_ns / NS_PER_US - a) / c);
	bool pays = once / (once + c) >= OFF_RATIO;
	d->cap = pays ? (int)fmax(1, fmin(room, v->max)) : 1;
	if (!worth_it(v, d->cap))
		return false;
	snprintf(d->rule, sizeof(d->rule), "%s: a call takes %.3g us and %.3g us per event",
	    pays ? "an eighth of slo" : "batches do not pay", a, c);
	return true;
}

const struct batch_policy batch_weir = {
    .name = "weir",
    .help = "the largest batch that an eighth of slo has room for, none where batches do not pay",
    .decide = weir_decide,
};
