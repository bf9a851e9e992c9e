/* SPDX-License-Identifier: MIT */
/* Tells which events a stage of a core group may get without its door (sink_offer), as far as
 * admission policies are concerned, and which of those that have passed it its queue need not have. */
#include "stage/admit.h"

/* The fronts that have been consulted about events of the class before they enter `s` from stage
 * `from`. */
static unsigned fronts_before(const struct sink *s, int from, int class_id)
{
	const struct ahead *before = from != WEIR_NO_STAGE ? s->sinks[from]->ahead : NULL;

	return before ? atomic_load_explicit(&before->judged[class_id], memory_order_relaxed) : 0;
}

bool admit_passed_ahead(const struct sink *s, int from, int class_id)
{
	unsigned judged = fronts_before(s, from, class_id);
	unsigned fronts = atomic_load_explicit(&s->ahead->fronts[class_id], memory_order_relaxed);
	bool own = s->policy == &admission_none || (s->front >= 0 && (judged >> s->front & 1));

	return own && (fronts & ~judged) == 0;
}

void admit_came_ahead(struct sink *s, int from, int class_id, int n)
{
	if (s->front < 0 || !(fronts_before(s, from, class_id) >> s->front & 1))
		return;
	atomic_fetch_sub_explicit(
	    &s->pipeline_ns, n * sink_cost_ns(s, class_id), memory_order_relaxed);
}

bool admit_to_cell(int n)
{
	struct thread *t = thread_self();

	t->celled = (uint32_t)n <= t->cell_room ? n : 0;
	return t->celled > 0;
}
