/* SPDX-License-Identifier: MIT */
/* Policy `fifo` of core groups: the stage whose oldest event is the oldest of all. */
#include "sched/next.h"
#include "sched/next_bits.h"

static int fifo_pick(void *state, const struct next_view *v)
{
	int best = bits_lowest(v->ready);
	int64_t oldest_ns = v->stage[best].oldest_ns;

	(void)state;
	for (uint64_t set = v->ready & (v->ready - 1); set; set &= set - 1) {
		int i = bits_lowest(set);
		int64_t at_ns = v->stage[i].oldest_ns;

		/* Selected without a branch, which could not be predicted. */
		best = at_ns < oldest_ns ? i : best;
		oldest_ns = at_ns < oldest_ns ? at_ns : oldest_ns;
	}
	return best;
}

const struct next_policy next_fifo = {
    .name = "fifo",
    .help = "visit the stage with the event that has waited longest",
    .pick = fifo_pick,
    .looks = true,
};
