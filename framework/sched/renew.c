/* SPDX-License-Identifier: MIT */
/*
 * Lets a core follow another policy while it runs.
 *
 * The state of the old policy is dropped. The new one is told of the events in the cells as if they
 * arrived now, in the order in which they were queued, since `color` visits the stages in that
 * order. Of a cell with `order: newest`, the order within the cell is not restored.
 */
#include "sched/cores.h"
#include "sched/next_bits.h"

/* Events of a list of which the policy has not been told yet. */
struct rest {
	const struct weir_event *at;
	uint8_t stage;
};

static int list_lanes(const struct core *core, struct rest *rest)
{
	int n = 0;

	for (uint64_t left = core->filled; left; left &= left - 1) {
		int i = bits_lowest(left);
		for (int c = 0; c < WEIR_CLASSES_MAX; c++)
			if (core->cell[i].filled >> c & 1)
				rest[n++] = (struct rest){core->cell[i].lane[c].head, (uint8_t)i};
	}
	return n;
}

/* Return the list with the oldest first event, or -1 if all are empty. *next_ns is the time of the
 * oldest first event of the others. */
static int oldest(const struct rest *rest, int n, int64_t *next_ns)
{
	int first = -1;

	*next_ns = INT64_MAX;
	for (int i = 0; i < n; i++) {
		if (!rest[i].at)
			continue;
		int64_t at_ns = rest[i].at->queued_ns;
		if (first >= 0 && at_ns >= rest[first].at->queued_ns) {
			*next_ns = at_ns < *next_ns ? at_ns : *next_ns;
			continue;
		}
		*next_ns = first >= 0 ? rest[first].at->queued_ns : INT64_MAX;
		first = i;
	}
	return first;
}

void core_renew(struct core *core)
{
	struct rest rest[NEXT_STAGES_MAX * WEIR_CLASSES_MAX];
	int n, i;
	int64_t next_ns;

	next_core_init(&core->next, core->plan.policy);
	if (!core->plan.policy->arrived)
		return;
	n = list_lanes(core, rest);
	while ((i = oldest(rest, n, &next_ns)) >= 0) {
		uint32_t run = 0;
		/* the first event, and those behind it that are not newer than all other lists */
		for (; rest[i].at && (run == 0 || rest[i].at->queued_ns <= next_ns); run++)
			rest[i].at = rest[i].at->next;
		next_arrived(&core->next, rest[i].stage, run);
	}
}
