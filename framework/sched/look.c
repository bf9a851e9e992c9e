/* SPDX-License-Identifier: MIT */
/*
 * Shows which events wait in the cells of a stage.
 *
 * Only the thread of a core may touch its cells, so each core that has events of the stage is asked.
 * It answers between two batches (core_answer) or, if it is parked, when it has been woken.
 */
#include "base/clock.h"
#include "base/futex.h"
#include "sched/cores.h"

/* How long to wait for answers. A core that is in a handler for longer is left out. 20 ms is a guess:
 * with `local: auto`, events of stages that take over 20 us do not wait in cells, so a batch takes
 * far less. */
#define ANSWER_NS (20 * NS_PER_MS)

static void ask(struct core_group *group, const struct sink *sink, const struct cores_look *look)
{
	unsigned asked = 0;

	lock_take(&group->lock);
	group->look = *look;
	for (int k = 0; k < group->max; k++)
		if (cell_length(&group->core[k].cell[sink->place]) > 0) {
			atomic_fetch_or(
			    &group->core[k].asked, ASKED_LOOK); /* seq_cst: see core_due */
			asked++;
		}
	atomic_store(&group->unanswered, asked);
	lock_release(&group->lock);
}

static void await_answers(struct core_group *group)
{
	int64_t until_ns = clock_now_ns() + ANSWER_NS;
	unsigned left;

	while ((left = atomic_load(&group->unanswered)) > 0) {
		int64_t left_ns = until_ns - clock_now_ns();
		if (left_ns <= 0)
			return;
		futex_wait(&group->unanswered, left, left_ns);
	}
}

/* Answers that come later are dropped. Returns the number of events described. */
static int finish(struct core_group *group)
{
	lock_take(&group->lock);
	for (int k = 0; k < group->max; k++)
		atomic_fetch_and(&group->core[k].asked, ~ASKED_LOOK);
	int n = group->look.n;
	lock_release(&group->lock);
	return n;
}

int cores_peek(struct core_group *group, const struct sink *sink, int64_t now_ns,
    struct weir_queued *out, int n, int max)
{
	struct cores_look look = {
	    .place = sink->place, .now_ns = now_ns, .out = out, .n = n, .max = max};

	lock_take(&group->asking);
	ask(group, sink, &look);
	if (atomic_load(&group->unanswered) > 0)
		pool_wake_all(group->pool);
	await_answers(group);
	n = finish(group);
	lock_release(&group->asking);
	return n;
}

void core_answer(struct core *core)
{
	struct core_group *group = core->group;
	struct cores_look *look = &group->look;

	lock_take(&group->lock);
	if (atomic_load(&core->asked) & ASKED_LOOK) {
		look->n = cell_peek(
		    &core->cell[look->place], look->now_ns, look->out, look->n, look->max);
		atomic_fetch_and(&core->asked, ~ASKED_LOOK);
		if (atomic_fetch_sub(&group->unanswered, 1) == 1)
			futex_wake(&group->unanswered);
	}
	lock_release(&group->lock);
}
