/* SPDX-License-Identifier: MIT */
/* Evaluates the outcomes of decisions; see outcome.h. */
#include "control/outcome.h"

#include <math.h>

#include "base/clock.h"

#define EARLY_NS (5 * NS_PER_S)
#define LATE_NS  (30 * NS_PER_S)

/* The following are guesses. Smoothing over a second hides the noise of single ticks; differences
 * below these ratios are taken for the remaining noise. */
#define SMOOTH_NS       ((double)NS_PER_S)
#define MORE_RATIO      1.05
#define SHORTER_RATIO   0.8
#define LONGER_RATIO    2.0
#define WAIT_MATTERS_S  0.010
#define WAIT_IS_NOISE_S 0.001
/* Lower bound of the throughput by which the queue length is divided, so that the wait is finite
 * even if a pool handles nothing. 0.01 is a guess. */
#define DONE_LEAST_PER_S 0.01

static void measure(struct outcomes *o, const struct resize_view *v, int64_t now_ns)
{
	double span_ns = (double)(now_ns - o->at_ns);
	double weight = 1 - exp(-span_ns / SMOOTH_NS);
	int64_t items = (int64_t)(v->items - o->items);

	if (!o->started || span_ns <= 0) {
		o->started = true;
	} else {
		double done_per_s = (items > 0 ? (double)items : 0) * NS_PER_S / span_ns;
		o->done_per_s += weight * (done_per_s - o->done_per_s);
		double wait_s = v->queue_length / fmax(o->done_per_s, DONE_LEAST_PER_S);
		o->wait_s += weight * (wait_s - o->wait_s);
	}
	o->at_ns = now_ns;
	o->items = v->items;
}

static const char *word_for(
    const struct outcomes *o, const struct outcome_pending *p, const struct resize_view *v)
{
	bool grew = p->to > p->from;

	if (grew ? v->target <= p->from : v->target >= p->from)
		return "undone";
	if (!grew && o->wait_s > WAIT_MATTERS_S && o->wait_s > LONGER_RATIO * p->wait_s)
		return "harmed";
	if (o->done_per_s > MORE_RATIO * p->done_per_s ||
	    (p->wait_s > WAIT_IS_NOISE_S && o->wait_s < SHORTER_RATIO * p->wait_s))
		return "helped";
	return "no effect";
}

void outcomes_step(
    struct outcomes *o, const struct resize_view *v, int64_t now_ns, struct journal *journal)
{
	measure(o, v, now_ns);
	for (int i = 0; i < OUTCOMES_MAX; i++) {
		struct outcome_pending *p = &o->pending[i];
		if (p->id == 0 || now_ns - p->at_ns < EARLY_NS)
			continue;
		if (!p->early_said)
			journal_outcome(journal, p->id, JOURNAL_5S, word_for(o, p, v));
		p->early_said = true;
		if (now_ns - p->at_ns < LATE_NS)
			continue;
		journal_outcome(journal, p->id, JOURNAL_30S, word_for(o, p, v));
		p->id = 0;
	}
}

void outcomes_expect(struct outcomes *o, uint64_t id, int from, int to, int64_t now_ns)
{
	o->pending[o->next] = (struct outcome_pending){.id = id,
	    .at_ns = now_ns,
	    .from = from,
	    .to = to,
	    .done_per_s = o->done_per_s,
	    .wait_s = o->wait_s};
	o->next = (o->next + 1) % OUTCOMES_MAX;
}
