/* SPDX-License-Identifier: MIT */
/* Batches that wait for more events (cohort.linger), as in framework/event/queue.c: a batch is due with
 * `batch_max` events in the queue, or once the oldest event has waited for `linger_ns`. As long as events
 * linger, one STEP_DUE is in the heap. If the oldest event is taken meanwhile, the step comes too early
 * and sends another one. */
#include "group.h"

bool linger_waits(const struct sim *s, const struct stage *st)
{
	uint32_t n = group_queued(st);

	return st->conf->linger_ns > 0 && n > 0 && n < (uint32_t)st->conf->batch_max &&
	       s->now_ns - waiting_oldest_ns(s, st, 0) < st->conf->linger_ns;
}

/* The length of the stage may not be counted yet, so only the age is looked at. */
void linger_watch(struct sim *s, struct stage *st)
{
	if (st->conf->linger_ns <= 0 || st->due)
		return;
	int64_t oldest_ns = waiting_oldest_ns(s, st, 0);
	if (oldest_ns == INT64_MAX || oldest_ns + st->conf->linger_ns <= s->now_ns)
		return;
	st->due = true;
	sim_at(s, oldest_ns + st->conf->linger_ns, STEP_DUE, (uint32_t)(st - s->stage));
}

void linger_due(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];

	st->due = false;
	linger_watch(s, st);
	if (st->group)
		st->group->law.woke = false;
	workers_start(s, stage);
	laws_check(s, stage);
}
