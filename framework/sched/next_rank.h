/* SPDX-License-Identifier: MIT */
/* Functions for the policies of core groups that rank the stages. */
#ifndef WEIR_SCHED_NEXT_RANK_H
#define WEIR_SCHED_NEXT_RANK_H

#include "sched/next.h"

/** Rank `n` stages by ascending `key`. Of equals, the first in `visit` goes first or, if
 *  `last_first` is set, the last. */
void next_rank(const int64_t *key, int n, bool last_first, struct next_order *out);

/** Pick the ready stage with the lowest rank. */
int next_rank_pick(void *state, const struct next_view *v);

#endif
