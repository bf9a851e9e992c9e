/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `threshold`: refuse what would lift the queue over a length (SEDA's
 * QueueThresholdPredicate), below the hard bound of the queue. Because a decision and its push are
 * one step under the queue's lock, the length never exceeds the threshold, whatever the number of
 * senders.
 */
#include "admission/admission.h"

static void threshold_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

static int threshold_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, int *reason)
{
	int64_t half = v->limit > 1 ? v->limit / 2 : 1;
	int64_t threshold = p->threshold >= 0 ? p->threshold : half;
	int64_t room = threshold - (int64_t)v->length;

	(void)state, (void)class_id;
	if (room >= n)
		return n;
	*reason = WEIR_ETHRESHOLD;
	return room < 0 ? 0 : (int)room;
}

const struct admission_policy admission_threshold = {
    .name = "threshold",
    .help = "refuse what would lift the queue over `threshold` events",
    .init = threshold_init,
    .admit = threshold_admit,
};
