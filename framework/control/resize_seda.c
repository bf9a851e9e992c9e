/* SPDX-License-Identifier: MIT */
/*
 * Resize policy `seda`: the thread pool controller of SEDA (Welsh, Culler, Brewer, SOSP 2001, 4.2),
 * without the defects of its implementation.
 *
 *   grow    every 2 s: when the queue is over a threshold, one thread more
 *   shrink  when a thread was not needed for 5 s, one thread fewer, per interval
 *
 * The paper's constants: sampling every 2 s, threshold 100 events, idle time 5 s. Its source looked
 * only every 8 s and let threads die after 1 s, which made the pool oscillate with any burst: the
 * paper's values are used. Mended here:
 *   - the queue length alone cannot tell blocked threads from a saturated CPU. Nothing grows while
 * the process has used up its cores: another thread could only take CPU from those there are.
 *   - a threshold above a short queue's limit never fires: it is at most half the limit.
 *   - "idle" is measured over the whole time, as 1 - busy time, not by one thread's luck with
 * wake-ups.
 */
#include "control/resize.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define SAMPLE_NS     (2 * NS_PER_S) /* paper, 4.2 */
#define IDLE_NS       (5 * NS_PER_S) /* paper, 4.2 */
#define THRESHOLD     100            /* paper, 4.2 */
#define CPU_SATURATED 0.95           /* overload.md 3.5: the veto of the .NET pool */

struct seda_state {
	bool started;
	int64_t sampled_ns;   /* last growth test */
	int64_t idle_from_ns; /* since when one thread fewer would have done */
	int64_t busy_at_ns;   /* busy_total was read then */
	uint64_t busy_total;
};

_Static_assert(sizeof(struct seda_state) <= RESIZE_STATE_MAX, "fits the contract");

static bool grow(const struct resize_view *v, struct resize_decision *d)
{
	uint32_t threshold = v->queue_limit / 2 < THRESHOLD ? v->queue_limit / 2 : THRESHOLD;

	if (v->queue_length <= threshold || v->live < v->target)
		return false;
	if (v->cpu_ratio >= CPU_SATURATED)
		return false;
	d->target = v->target + 1;
	snprintf(d->rule, sizeof(d->rule), "queue %u over threshold %u at a sample",
	    v->queue_length, threshold);
	return true;
}

/* Would one thread fewer have done since the last look? */
static bool one_too_many(struct seda_state *s, const struct resize_view *v, int64_t now_ns)
{
	/* Signed: a batch that ends while it is read may be counted twice, and then not. */
	double busy = (double)(int64_t)(v->busy_ns_total - s->busy_total) /
		      (double)(now_ns > s->busy_at_ns ? now_ns - s->busy_at_ns : 1);

	s->busy_total = v->busy_ns_total;
	s->busy_at_ns = now_ns;
	/* A margin of a fifth of a thread, or noise around a whole number would count as idle. */
	return v->queue_length == 0 && busy < v->target - 1.2;
}

static bool shrink(
    struct seda_state *s, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	if (!one_too_many(s, v, now_ns)) {
		s->idle_from_ns = now_ns;
		return false;
	}
	if (v->target <= v->min || now_ns - s->idle_from_ns < IDLE_NS)
		return false;
	s->idle_from_ns = now_ns;
	d->target = v->target - 1;
	snprintf(d->rule, sizeof(d->rule), "one thread idle for %lld s", IDLE_NS / NS_PER_S);
	return true;
}

static bool seda_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	struct seda_state *s = state;

	if (!s->started) {
		*s = (struct seda_state){.started = true,
		    .sampled_ns = now_ns,
		    .idle_from_ns = now_ns,
		    .busy_at_ns = now_ns,
		    .busy_total = v->busy_ns_total};
		return false;
	}
	if (now_ns - s->sampled_ns >= SAMPLE_NS) {
		s->sampled_ns = now_ns;
		if (grow(v, d))
			return true;
	}
	return shrink(s, v, now_ns, d);
}

const struct resize_policy resize_seda = {
    .name = "seda",
    .help = "one thread more while the queue is long, one fewer while one is idle (SEDA)",
    .decide = seda_decide,
};
