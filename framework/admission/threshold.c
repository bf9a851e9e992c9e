/* SPDX-License-Identifier: MIT */
/*
 * Admission policy `threshold`: refuses events that would make the queue longer than a threshold,
 * which is at most the hard limit of the queue (SEDA's QueueThresholdPredicate). A decision and its
 * push are one step under the queue's lock, so admission never raises the length above the
 * threshold, however many senders there are.
 *
 * Lower classes have a lower threshold, so that slots are left for the higher ones when load rises:
 * class k of K, 0 being the highest, is refused at lengths from threshold * (1 - 0.5 * k / K) on.
 */
#include "admission/admission.h"

static void threshold_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

/* Return the threshold of the class: at least 1, so that an idle stage serves every class. */
static int64_t threshold_of_class(int64_t threshold, int class_id, int n_classes)
{
	int64_t lowered =
	    n_classes > 1 ? threshold - threshold * class_id / (2 * (int64_t)n_classes) : threshold;

	return lowered < 1 ? 1 : lowered;
}

static int threshold_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	int64_t half = v->limit > 1 ? v->limit / 2 : 1;
	int64_t threshold = p->threshold >= 0 ? p->threshold : half;
	int64_t room = threshold_of_class(threshold, class_id, v->n_classes) - (int64_t)v->length;

	(void)state, (void)refused;
	if (room >= n)
		return n;
	*reason = WEIR_ETHRESHOLD;
	return room < 0 ? 0 : (int)room;
}

const struct admission_policy admission_threshold = {
    .name = "threshold",
    .help = "refuse events that would raise the queue above `threshold`, lower classes sooner",
    .queue = true,
    .init = threshold_init,
    .admit = threshold_admit,
};
