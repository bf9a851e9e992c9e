/* SPDX-License-Identifier: MIT */
/*
 * Policy `srpt` of core groups (Gordon 2010, 3.1.2): picks the ready stage with the least work left
 * to the end of the graph.
 *
 * Gordon ranks stages by position alone, the last stage first. Here the measured work from a stage
 * to the end decides, since graphs branch. If this work is not known for a stage, the value of the
 * next stage of `visit` for which it is known is used. Of equals, the last goes first. So before
 * the first measurement the order is Gordon's.
 */
#include "sched/next_rank.h"

static void srpt_order(
    const struct next_view *v, const struct next_limits *l, struct next_order *out)
{
	int64_t rest_ns[NEXT_STAGES_MAX], known_ns = 0;

	(void)l;
	for (int i = v->n - 1; i >= 0; i--) {
		if (v->stage[i].rest_ns > 0)
			known_ns = v->stage[i].rest_ns;
		rest_ns[i] = known_ns;
	}
	next_rank(rest_ns, v->n, true, out);
}

const struct next_policy next_srpt = {
    .name = "srpt",
    .help = "visit the stage from which the least work is left to the end of the graph (Gordon)",
    .order = srpt_order,
    .pick = next_rank_pick,
};
