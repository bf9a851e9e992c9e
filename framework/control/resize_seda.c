/* SPDX-License-Identifier: MIT */
/*
 * Resize policy `seda`: the thread pool controller of SEDA (Welsh, Culler, Brewer, SOSP 2001, 4.2),
 * without the defects of its implementation.
 *
 *   grow    by one thread, every 2 s, if the queue is longer than a threshold
 *   shrink  by one thread, every 5 s, if one thread fewer would have sufficed for that time
 *
 * The constants are those of the paper: sampling every 2 s, a threshold of 100 events, an idle time
 * of 5 s. SEDA's source instead sampled only every 8 s and terminated idle threads after 1 s, so
 * the pool oscillated with every burst. Fixed here:
 *   - The queue length alone cannot distinguish blocked threads from a saturated CPU. The pool does
 *     not grow while the process uses all its cores, since another thread could only take CPU time
 *     from the existing threads.
 *   - The threshold is at most half the limit of the queue. A threshold above the limit of a short
 *     queue would never be reached.
 *   - "Idle" is computed from the busy time of all threads. A single thread may be idle only
 *     because others were woken.
 */
#include "control/resize.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define SAMPLE_NS     (2 * NS_PER_S) /* paper, 4.2 */
#define IDLE_NS       (5 * NS_PER_S) /* paper, 4.2 */
#define THRESHOLD     100            /* paper, 4.2 */
#define CPU_SATURATED 0.95 /* no growth above this CPU use; value of the .NET thread pool */

struct seda_state {
	bool started;
	int64_t sampled_ns;   /* time of the last check for growth */
	int64_t idle_from_ns; /* one thread fewer would have sufficed since then */
	int64_t busy_at_ns;   /* when busy_total was read */
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
	snprintf(d->rule, sizeof(d->rule), "the queue of %u was over the threshold of %u",
	    v->queue_length, threshold);
	return true;
}

/* Whether one thread fewer would have sufficed since the last check. */
static bool one_too_many(struct seda_state *s, const struct resize_view *v, int64_t now_ns)
{
	/* The difference may be negative: a batch that ends while the totals are read may be
	 * counted twice, and only once at the next reading. */
	double busy = (double)(int64_t)(v->busy_ns_total - s->busy_total) /
		      (double)(now_ns > s->busy_at_ns ? now_ns - s->busy_at_ns : 1);

	s->busy_total = v->busy_ns_total;
	s->busy_at_ns = now_ns;
	/* The margin of a fifth of a thread absorbs noise around whole numbers. */
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
    .help = "add a thread while the queue is long, remove one while a thread is idle (SEDA)",
    .decide = seda_decide,
};
