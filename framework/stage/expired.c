/* SPDX-License-Identifier: MIT */
/* Gives events whose hold with a ticket has expired (weir_hold_until) back to their stage. Those whose
 * family has ended come here, too, but end instead: ops->expired may answer an event, and nobody waits
 * for an answer any more. */
#include "event/op.h"
#include "stage/call.h"
#include "stage/stage.h"

void stage_expire(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) /* a requeued one goes to ops->handle */
		if (ev[i]->type->op)
			op_of(ev[i])->next = NULL;
	if (st->ops->expired)
		st->ops->expired(st, ev, n);
	for (int i = 0; i < n; i++)
		if (ev[i])
			weir_event_finish(&ev[i], WEIR_EDEADLINE);
}

int stage_end_over(struct weir_event **ev, int n)
{
	struct op_check check = {0};
	int left = 0;

	for (int i = 0; i < n; i++) {
		if (op_check(&check, ev[i]))
			weir_event_finish(&ev[i], WEIR_ECANCELLED);
		else
			ev[left++] = ev[i];
	}
	for (int i = left; i < n; i++)
		ev[i] = NULL;
	return left;
}

/* As stage_end_over. Those that end do not go to the loop, where they would stop counting as arriving. */
static int end_over(struct weir_stage *st, struct weir_event **ev, int n)
{
	int left = stage_end_over(ev, n);

	if (st->to_loop)
		atomic_fetch_sub(&st->arriving, n - left);
	return left;
}

void stage_expired(struct sink *sink, struct weir_event **ev, int n)
{
	struct weir_stage *st = sink->stage;
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];

	call_next(t);
	hold_expired(st, ev, n);
	if (WEIR_UNLIKELY(op_checks()) && (n = end_over(st, ev, n)) == 0)
		return;
	bool ready = l->thread_ready || thread_prepare(l);
	call_begin(sink, l, ev, n);
	if (WEIR_UNLIKELY(st->to_loop != NULL))
		st->to_loop(st, ev, n);
	else if (ready)
		stage_expire(st, ev, n);
	for (int i = 0; i < n; i++)
		if (ev[i])
			weir_event_finish(&ev[i], WEIR_EDEADLINE);
	book_add(&l->book.busy_ns, (uint64_t)call_end(sink, l, n));
	call_over(l);
}

void stage_expired_over(struct sink *sink, int n)
{
	struct weir_stage *st = sink->stage;

	if (!st->to_loop) /* otherwise the events are still on their way to the loop */
		atomic_fetch_sub(&st->arriving, n);
}
