/* SPDX-License-Identifier: MIT */
/* Gives events whose hold with a ticket has expired (weir_hold_until) back to their stage. */
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

void stage_expired(struct sink *sink, struct weir_event **ev, int n)
{
	struct weir_stage *st = sink->stage;
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];

	call_next(t);
	hold_expired(st, ev, n);
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
