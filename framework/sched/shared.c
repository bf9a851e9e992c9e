/* SPDX-License-Identifier: MIT */
/*
 * Scheduling policy `shared`: visits the stages of a group in turn and skips empty ones.
 *
 * This is the Combine pattern (Welsh 2000, 3.2.3) with a bound. A stage that always has work is
 * visited only once per round, so no stage starves, and a batch is at most the stage's cohort, so a
 * round is short. Pools that serve a single stage use this policy, too.
 */
#include "sched/policy.h"

struct shared_state {
	int next; /* index of the stage to check next */
};

static int shared_pick(void *state, const struct sched_view *view, int n, int64_t now_ns)
{
	struct shared_state *s = state;

	(void)now_ns;
	for (int i = 0; i < n; i++) {
		int at = (s->next + i) % n;
		if (view[at].length > 0) {
			s->next = (at + 1) % n;
			return at;
		}
	}
	return -1;
}

const struct sched_policy sched_shared = {
    .name = "shared",
    .help = "visit the stages of the group in turn, skipping empty ones",
    .pick = shared_pick,
};
