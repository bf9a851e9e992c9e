/* SPDX-License-Identifier: MIT */
/* Rankings of stages. A pick looks at the ranks of ready stages only, so it costs O(ready). */
#include "sched/next_rank.h"

#include <weir/annotate.h>

#include "sched/next_bits.h"

void next_rank(const int64_t *key, int n, bool last_first, struct next_order *out)
{
	for (int i = 0; i < n; i++) {
		int before = 0;

		for (int k = 0; k < n; k++)
			before +=
			    key[k] < key[i] || (key[k] == key[i] && (last_first ? k > i : k < i));
		out->rank[i] = (uint8_t)before;
	}
}

WEIR_HOT int next_rank_pick(void *state, const struct next_view *v)
{
	const uint8_t *rank = v->order->rank;
	int best = bits_lowest(v->ready);
	uint8_t least = rank[best];

	(void)state;
	for (uint64_t set = v->ready & (v->ready - 1); set; set &= set - 1) {
		int i = bits_lowest(set);

		/* Selected without a branch, which could not be predicted. */
		best = rank[i] < least ? i : best;
		least = rank[i] < least ? rank[i] : least;
	}
	return best;
}
