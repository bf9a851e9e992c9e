/* SPDX-License-Identifier: MIT */
/* A short way to choose the next stage, for a core with many small batches: see next.h. */
#ifndef WEIR_SCHED_NEXT_QUICK_H
#define WEIR_SCHED_NEXT_QUICK_H

#include "sched/next.h"
#include "sched/next_bits.h"

/** Choose as next_choose does, and with the same effects, if that needs no more than the policy and
 *  v->ready. Returns the stage of the next batch, which the gate does not bound, and sets *begins to
 *  whether a visit begins; or changes nothing and returns -1. No visit is cut. */
static inline int next_quick(struct next_core *core, const struct next_view *v, bool *begins)
{
	struct next_visit *visit = &core->visit;
	bool several = (v->ready & (v->ready - 1)) != 0;

	if (!core->simple || core->urgent.open || !v->ready || v->now_ns >= core->starve_check_ns ||
	    (several && core->policy->looks))
		return -1;
	*begins = !visit->open || !bits_has(v->ready, visit->stage);
	if (!*begins)
		return visit->gate == NEXT_ALL && visit->left > 0 ? visit->stage : -1;
	int stage = core->policy->pick(core->state, v);
	visit->open = true;
	visit->stage = stage;
	visit->gate = NEXT_ALL;
	visit->left = UINT32_MAX;
	visit->until_ns = INT64_MAX;
	visit->began_ns = v->now_ns;
	core->last = stage;
	return stage;
}

#endif
