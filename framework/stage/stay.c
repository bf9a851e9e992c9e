/* SPDX-License-Identifier: MIT */
/* Counts events that a stage makes, holds and requeues (weir/hold.h, weir/op.h). */
#include "event/op.h"
#include "stage/stage.h"

void stage_begin(struct thread *t, const struct weir_stage *st, struct weir_event *ev)
{
	struct book *book = book_take(t, st->id);
	bool fresh = ev->state == WEIR_EVENT_NEW;

	if (fresh && st->ops->flags & WEIR_STAGE_SOURCE) {
		ev->stage = (uint16_t)st->id;
		book_add(&book->class_book[ev->class_id].offered, 1);
	} else if (fresh) { /* stays NEW until it is admitted */
		ev->stage = (uint16_t)st->id;
		book_add(&book->class_book[ev->class_id].spawned, 1);
		if (ev->type->op)
			op_of(ev)->maker = (uint16_t)st->id;
		else /* it does not know its maker when it ends */
			book_add(&book->orphaned, 1);
	} else {
		book_add(&book->held, (uint64_t)-1);
	}
	if (!fresh || st->ops->flags & WEIR_STAGE_SOURCE)
		ev->state = WEIR_EVENT_RUNNING;
	book_add(&book->running, 1);
	book_give(t, st->id, book);
}

/* Record that the handler which `t` is running has kept an event of class `c` in the stage, which
 * has a width. `count` is t->stay_held or t->stay_queued. */
static void note_stay(struct thread *t, const struct weir_stage *st, int *count, int c)
{
	if (atomic_load_explicit(&t->running, memory_order_relaxed) != st)
		return;
	count[c]++;
	t->stays = true;
}

void stage_note_kept(struct thread *t, struct weir_stage *st, struct weir_event *ev)
{
	/* The wait is already recorded: from here on, queued_ns is the start of the service
	 * (graph/hold.c). */
	ev->queued_ns = t->now_ns;
	note_stay(t, st, t->stay_held, ev->class_id);
}

void weir_hold(struct weir_stage *st, struct weir_event **slot)
{
	struct thread *t = thread_self();

	if (WEIR_UNLIKELY(t->unsent > 0) && (*slot)->type->op)
		op_let_go(t, *slot, false);
	/* an event for a loop was already held when it was sent to the loop */
	if (st->loop && (*slot)->state == WEIR_EVENT_HELD) {
		*slot = NULL;
		return;
	}
	WEIR_ASSERT((*slot)->state == WEIR_EVENT_RUNNING && (*slot)->stage == st->id);
	(*slot)->state = WEIR_EVENT_HELD;
	struct book *book = book_take(t, st->id);
	book_add(&book->held, 1);
	book_add(&book->running, (uint64_t)-1);
	book_give(t, st->id, book);
	stage_keep(t, st, *slot);
	*slot = NULL;
}

void stage_end_kept(struct thread *t, struct weir_stage *st, struct weir_event **slot, int status)
{
	hold_count(t, st->id, (*slot)->class_id, -1);
	weir_event_finish(slot, status);
	if (stage_has_width(st))
		hold_wake(t, st);
}

void weir_requeue(struct weir_stage *st, struct weir_event **slot)
{
	struct thread *t = thread_self();
	struct local *l = local_find(t, st->id);
	struct weir_event *ev = *slot;

	bool held = ev->state == WEIR_EVENT_HELD;
	if (WEIR_UNLIKELY(t->unsent > 0) && ev->type->op)
		op_let_go(t, ev, false);
	if (WEIR_UNLIKELY(t->slice.ns > 0) && !held && st->pool == t->pool)
		t->slice.yielded++;
	if (held) {
		hold_record_part(t, ev);
		stage_begin(t, st, ev);
	} else if (WEIR_UNLIKELY(stage_has_width(st))) {
		note_stay(t, st, t->stay_queued, ev->class_id);
	}
	if (WEIR_UNLIKELY(!l)) { /* no memory for an outbox */
		if (held)
			stage_end_kept(t, st, slot, WEIR_ENOMEM);
		else
			weir_event_finish(slot, WEIR_ENOMEM);
		return;
	}
	/* an event of a counted batch (struct keep) counts as held when the batch is settled */
	if (!held && t->unsettled == &l->stage->sink.queue && t->reserved[ev->class_id] > 0) {
		hold_count(t, st->id, ev->class_id, 1);
		held = true;
	}
	if (held) { /* a held event occupies its slot until it is queued */
		l->again_held[ev->class_id]++;
		l->again_holds = true;
	}
	WEIR_ASSERT(ev->state == WEIR_EVENT_RUNNING && ev->stage == st->id);
	*slot = NULL;
	outbox_add(t, &l->again, ev);
}
