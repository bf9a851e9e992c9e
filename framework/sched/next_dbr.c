/* SPDX-License-Identifier: MIT */
/*
 * Policy `dbr`, drum buffer rope, of core groups (Gordon 2010, 3.1.3, after Goldratt): picks the
 * slowest stage that is ready, the one with the longest mean service time, since the bottleneck
 * limits the throughput of the group. Stages not measured yet come last, in the order of `visit`.
 */
#include "sched/next_rank.h"

static void dbr_order(
    const struct next_view *v, const struct next_limits *l, struct next_order *out)
{
	int64_t key[NEXT_STAGES_MAX];

	(void)l;
	for (int i = 0; i < v->n; i++)
		key[i] = -v->stage[i].service_ns;
	next_rank(key, v->n, false, out);
}

const struct next_policy next_dbr = {
    .name = "dbr",
    .help = "visit the slowest stage (drum buffer rope, Gordon)",
    .order = dbr_order,
    .pick = next_rank_pick,
};
