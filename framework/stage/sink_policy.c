/* SPDX-License-Identifier: MIT */
/* What the admission policy of a stage is set to, and says of itself; see sink.h. sink.c asks it about
 * events. */
#include "stage/sink.h"

void sink_first_cost(struct sink *s, int64_t cost_ns)
{
	for (int c = 0; c < s->queue.n_classes; c++)
		atomic_store_explicit(&s->cost_ns[c], cost_ns, memory_order_relaxed);
	atomic_store_explicit(&s->mean_cost_ns, cost_ns, memory_order_relaxed);
}

bool sink_rested(struct sink *s)
{
	if (!s->policy->rested)
		return false;
	lock_take(&s->queue.lock);
	bool rested = s->policy->rested(s->admission_state);
	lock_release(&s->queue.lock);
	return rested;
}

void sink_explain(struct sink *s, const char *const *names, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!s->policy->explain)
		return;
	lock_take(&s->queue.lock);
	s->policy->explain(s->admission_state, &s->admission, names, buf, size);
	lock_release(&s->queue.lock);
}

void sink_set_admission(struct sink *s, const struct weir_admission_spec *spec, int64_t now_ns)
{
	lock_take(&s->queue.lock);
	s->admission.mode = spec->mode;
	s->admission.threshold = spec->threshold;
	s->admission.rate = spec->rate;
	s->admission.burst = spec->burst;
	s->admission.target_ns = spec->target_ns;
	s->admission.interval_ns = spec->interval_ns;
	s->policy->init(s->admission_state, &s->admission, now_ns);
	lock_release(&s->queue.lock);
}
