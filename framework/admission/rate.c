/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `rate`: limits the rate with a token bucket that is exact at any rate.
 *
 * In any interval t the policy admits at most burst + rate * t events. The tokens of events that
 * the queue then refuses are returned (SEDA lost them).
 */
#include "admission/admission.h"
#include "admission/bucket.h"

/* Default depth of the bucket, in seconds at the configured rate. 10 ms is a guess, enough to
 * absorb the batch of one event loop iteration. */
#define BURST_S 0.01

static double rate_burst(const struct weir_admission_spec *p)
{
	double burst = p->burst > 0 ? p->burst : p->rate * BURST_S;

	return burst < 1 ? 1 : burst;
}

static void rate_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	bucket_init(state, rate_burst(p), now_ns);
}

static int rate_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	struct bucket *bucket = state;

	(void)class_id, (void)refused;
	bucket_fill(bucket, p->rate, rate_burst(p), v->now_ns);
	int m = bucket_take(bucket, n);
	if (m < n)
		*reason = WEIR_ERATE;
	return m;
}

static void rate_give_back(void *state, int n)
{
	struct bucket *bucket = state;

	bucket->tokens += n;
}

const struct admission_policy admission_rate = {
    .name = "rate",
    .help = "admit `rate` events per second with bursts of `burst`",
    .state_size = sizeof(struct bucket),
    .init = rate_init,
    .admit = rate_admit,
    .give_back = rate_give_back,
};
