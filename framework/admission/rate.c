/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `rate`: a token bucket, exact at any rate.
 *
 * Tokens accrue continuously with time, not per tick (SEDA's rate controller silently capped every
 * rate at 1,000 per second because it slept in whole milliseconds), and a run that the queue
 * refuses gets its tokens back (SEDA's lost them). Over any interval t the policy admits at most
 * burst + rate * t events.
 */
#include "admission/admission.h"

/* Default depth of the bucket in seconds of rate: absorbs the batching of an I/O turn. Guess. */
#define BURST_S 0.01

struct rate_state {
	double tokens;
	int64_t at_ns; /* time to which tokens have accrued */
};

static double rate_burst(const struct weir_admission_spec *p)
{
	double burst = p->burst > 0 ? p->burst : p->rate * BURST_S;

	return burst < 1 ? 1 : burst;
}

static void rate_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	struct rate_state *s = state;

	s->tokens = rate_burst(p);
	s->at_ns = now_ns;
}

static int rate_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, int *reason)
{
	struct rate_state *s = state;
	double burst = rate_burst(p);

	(void)class_id;
	if (v->now_ns > s->at_ns) { /* batch times of two threads may come out of order */
		s->tokens += (double)(v->now_ns - s->at_ns) * 1e-9 * p->rate;
		s->at_ns = v->now_ns;
	}
	if (s->tokens > burst)
		s->tokens = burst;
	/* Accrual in small steps may leave 0.99999999 of a token: a hair more is one. */
	double whole = s->tokens + 1e-9;
	int m = whole >= n ? n : (int)whole;
	s->tokens -= m;
	if (m < n)
		*reason = WEIR_ERATE;
	return m;
}

static void rate_give_back(void *state, int n)
{
	struct rate_state *s = state;

	s->tokens += n;
}

const struct admission_policy admission_rate = {
    .name = "rate",
    .help = "admit `rate` events per second with bursts of `burst`",
    .state_size = sizeof(struct rate_state),
    .init = rate_init,
    .admit = rate_admit,
    .give_back = rate_give_back,
};
