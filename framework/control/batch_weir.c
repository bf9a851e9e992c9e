/* SPDX-License-Identifier: MIT */
/*
 * Batch policy `weir`: chooses the largest batch that fits into an eighth of the objective, if
 * batching pays at all (cohort scheduling: Larus and Parkes 2002).
 *
 *   time of a call   S(b) = a + c * b      a is the cost of a call, c that of an event
 *   cap              (slo / 8 - a) / c, between 1 and max
 *   off (cap 1)      if a and the handover are under 5 % of the whole cost of a call with one event
 *
 * a and c are learned by recursive least squares with forgetting 0.98. The samples are the means of
 * 250 ms windows; the line through the means is also the line through the calls. Throughput is not
 * compared: in SEDA's controller, which compares it, the cap follows the arrival rate and
 * oscillates.
 *
 * While all calls have the same size, a and c cannot be separated. The estimated time is then right
 * for this size, and the covariance is bounded so that it does not grow without limit. The first
 * batch of another size separates the two. Time is in microseconds internally, so that a and c have
 * similar magnitudes.
 *
 * A new cap that differs from the old one by less than a fifth is ignored, unless it is 1 or max.
 */
#include "control/batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/number_text.h"

/* Constants of the policy; the comment at the top explains their use. */
#define WINDOW_NS  (250 * NS_PER_MS)
#define FORGETTING 0.98
#define SLO_SHARE  0.125
#define OFF_RATIO  0.05
#define CHANGE     0.2

/* Initial and largest variance of a and c. 1000 us^2 is a guess: large enough that the first
 * samples count in full, small enough that one odd sample after a quiet hour does not. */
#define UNSURE 1e3

/* Smallest c: 1 ns, since even a handler that does nothing moves a pointer. */
#define C_MIN_US 1e-3

struct weir_state {
	bool started;
	int64_t window_ns;
	uint64_t batches, items, busy_ns; /* totals at the start of the window */
	double a_us, c_us;
	double p_aa, p_ac, p_cc; /* covariance of a and c, divided by the variance of the samples */
};

_Static_assert(sizeof(struct weir_state) <= BATCH_STATE_MAX, "fits the contract");

/* Learn from one sample: a call with `size` events took `took_us`. This is the textbook step
 * (Ljung, System Identification, 11.2) with x = (1, size). */
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

/* Learn from the window if it has ended. Returns false if it has not ended or has too few calls. */
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
	snprintf(d->rule, sizeof(d->rule), "%s: a call takes %s us plus %s us per event",
	    pays ? "fits into an eighth of slo" : "batching does not pay",
	    number_text(NUMBER_ROOM, a, 3), number_text(NUMBER_ROOM, c, 3));
	return true;
}

const struct batch_policy batch_weir = {
    .name = "weir",
    .help = "the largest batch that fits into an eighth of slo, single events where batching does "
	    "not pay",
    .decide = weir_decide,
};
