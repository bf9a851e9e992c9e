/* SPDX-License-Identifier: MIT */
/*
 * Batch policy `seda`: the batching controller of SEDA (Welsh, Culler, Brewer, SOSP 2001, 4.2),
 * without the defects of its implementation.
 *
 *   while throughput is over 0.90 of the best    cap / 1.2, since small batches finish sooner
 *   after throughput has fallen to 0.90          cap * 1.2, until it is 0.98 of the best again
 *
 * Fixed here:
 *   - The cap is a real number internally. As an integer it got stuck between 1 and 4, where a
 *     fifth of it is less than one.
 *   - Throughput is compared only while events wait. With an empty queue it equals the arrival
 *     rate, and a lull would look like a cap that is too small.
 *   - The best throughput decays by a hundredth per window, so that a burst, or a time when the
 *     stage was faster, is eventually forgotten.
 */
#include "control/batch.h"

#include <stdio.h>

#include "base/clock.h"

#define WINDOW_NS (NS_PER_S) /* 1 s is a guess; the original used the same */
#define STEP      1.2        /* from SEDA's source, like FALLEN and HEALED */
#define FALLEN    0.90
#define HEALED    0.98
#define FORGET    0.99 /* a guess: halves the best throughput in about a minute */

struct seda_state {
	bool started, raising;
	int64_t window_ns;
	uint64_t items;
	double cap, best_per_s, done_per_s;
};

_Static_assert(sizeof(struct seda_state) <= BATCH_STATE_MAX, "fits the contract");

static void steer(struct seda_state *s, int max)
{
	if (s->raising)
		s->raising = s->done_per_s < HEALED * s->best_per_s;
	else
		s->raising = s->done_per_s <= FALLEN * s->best_per_s;
	s->cap = s->raising ? s->cap * STEP : s->cap / STEP;
	s->cap = s->cap < 1 ? 1 : s->cap > max ? max : s->cap;
}

static bool seda_decide(
    void *state, const struct batch_view *v, int64_t now_ns, struct batch_decision *d)
{
	struct seda_state *s = state;

	if (!s->started) {
		*s = (struct seda_state){
		    .started = true, .window_ns = now_ns, .items = v->items, .cap = v->cap};
		return false;
	}
	if (now_ns - s->window_ns < WINDOW_NS)
		return false;
	int64_t items = (int64_t)(v->items - s->items);
	s->done_per_s =
	    (double)(items > 0 ? items : 0) * NS_PER_S / (double)(now_ns - s->window_ns);
	s->window_ns = now_ns;
	s->items = v->items;
	if (v->queue_length == 0)
		return false;
	s->best_per_s *= FORGET;
	if (s->done_per_s > s->best_per_s)
		s->best_per_s = s->done_per_s;
	steer(s, v->max);
	d->cap = (int)(s->cap + 0.5);
	snprintf(
	    d->rule, sizeof(d->rule), "%.0f/s, the best was %.0f/s", s->done_per_s, s->best_per_s);
	return d->cap != v->cap;
}

const struct batch_policy batch_seda = {
    .name = "seda",
    .help = "smaller batches while throughput holds, larger ones when it falls (SEDA)",
    .decide = seda_decide,
};
