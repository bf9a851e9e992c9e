/* SPDX-License-Identifier: MIT */
/* Operations: the end of children, and what their parents see of it; see graph/op.c. */
#include "event/op.h"
#include "event/slab.h"
#include "graph/graph.h"
#include "stage/stage.h"

/* Release the memory of an event that has ended. */
static inline void release(struct thread *t, struct weir_event *ev, int status)
{
	const struct weir_event_type *type = ev->type;
	struct weir_family *family = op_of(ev)->family;
	bool slab = op_of(ev)->flags & OP_SLAB;

	op_of(ev)->family = NULL;

	if (WEIR_UNLIKELY(type->payloads != 0) && payloads_of(ev)->n > 0)
		payload_finish(ev, status);
	else if (type->finish)
		type->finish(ev, status);
	if (slab)
		slab_give(&t->slab, ev, type->size);
	if (WEIR_UNLIKELY(family != NULL))
		family_leave(family, type->size);
}

void op_free_ended(struct thread *t, struct weir_event *ev)
{
	struct weir_op *op = op_of(ev);
	struct weir_event *list = op->children;

	op->children = NULL;
	op->n_awaited = 0;
	while (list) {
		struct weir_event *child = list;
		list = op_of(child)->sibling;
		release(t, child, op_of(child)->status);
	}
}

/* Link the awaited children by `next`, which queues have used, and count them as joined, or as
 * cancelled. */
static void collect(struct thread *t, int id, const struct weir_event *ev)
{
	const struct weir_op *op = op_of(ev);
	uint64_t cancelled = 0;
	struct book *book = book_take(t, id);

	for (struct weir_event *c = op->children; c; c = c->next) {
		c->next = op_of(c)->sibling;
		cancelled += op_of(c)->status == WEIR_ECANCELLED;
	}
	book_add(&book->joined, op->n_awaited - cancelled);
	book_add(&book->cancelled, cancelled);
	book_add(&book->class_book[ev->class_id].awaiting, (uint64_t)-1);
	book_add(&book->running, 1);
	book_give(t, id, book);
}

/* Let the stage have `ev`, all of whose children have ended, again. It occupies its slot until it is
 * in the queue. */
static __attribute__((noinline)) void resume(struct thread *t, struct weir_event *ev)
{
	struct weir_stage *st = t->graph->stages[ev->stage];
	struct local *l = local_find(t, st->id);

	if (WEIR_UNLIKELY(stage_has_width(st)))
		hold_record_part(t, ev);
	collect(t, st->id, ev);
	ev->state = WEIR_EVENT_RUNNING;
	if (WEIR_UNLIKELY(!l)) {
		stage_end_kept(t, st, &ev, WEIR_ENOMEM);
		return;
	}
	l->again_held[ev->class_id]++;
	l->again_holds = true;
	outbox_add(t, &l->again, ev);
}

static WEIR_COLD void note_status(struct weir_op *op, int status)
{
	int16_t none = WEIR_OK;

	if (__atomic_load_n(&op->status, __ATOMIC_RELAXED) == WEIR_OK)
		__atomic_compare_exchange_n(
		    &op->status, &none, (int16_t)status, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* A child of `parent` has ended with `status`. The parent may end in another thread as soon as
 * `pending` has been lowered. */
static inline void join(struct thread *t, struct weir_event *parent, int status)
{
	struct weir_op *op = op_of(parent);

	if (WEIR_UNLIKELY(status != WEIR_OK))
		note_status(op, status);
	/* acquire: pairs with the decrements of other threads. If only this child is left, no other
	 * thread uses the parent. */
	if (__atomic_load_n(&op->pending, __ATOMIC_ACQUIRE) == 1)
		op->pending = 0;
	else if (__atomic_sub_fetch(&op->pending, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	resume(t, parent);
}

/* End an event that has no parent. */
static __attribute__((noinline)) void end_alone(struct thread *t, struct weir_event *ev, int status)
{
	int maker = op_of(ev)->maker;

	if (maker != WEIR_NO_STAGE) {
		struct book *book = book_take(t, maker);
		book_add(status == WEIR_ECANCELLED ? &book->cancelled : &book->orphaned, 1);
		book_give(t, maker, book);
	}
	release(t, ev, status);
}

/* As op_end, for an event with children of its own, or with a family. It leaves the family when its
 * memory is released. */
static __attribute__((noinline)) void leave(struct thread *t, struct weir_event *ev)
{
	WEIR_ASSERT(
	    op_of(ev)->n_unsent == 0); /* else another thread has given it some (weir_child) */
	if (op_of(ev)->children)
		op_free_ended(t, ev);
}

/* As op_end, for a child whose parent awaits the first of its children. If this child decides, the parent
 * is resumed with it as its only child. */
static __attribute__((noinline)) void end_racing(
    struct thread *t, struct weir_event *ev, int status)
{
	struct weir_op *op = op_of(ev);
	int result;
	struct weir_event *parent = family_raced(op->family, status, &result);

	leave(t, ev);
	op->next = NULL;
	if (!parent) {
		end_alone(t, ev, status);
		return;
	}
	op->status = (int16_t)status;
	op->sibling = NULL;
	op_of(parent)->status = (int16_t)result;
	op_of(parent)->children = ev;
	op_of(parent)->n_awaited = 1;
	op_of(parent)->pending = 0;
	resume(t, parent);
}

void op_end(struct thread *t, struct weir_event *ev, int status)
{
	struct weir_op *op = op_of(ev);

	if (WEIR_UNLIKELY(op->children != NULL || op->family != NULL)) {
		if (WEIR_UNLIKELY(op->flags & OP_RACES)) {
			end_racing(t, ev, status);
			return;
		}
		leave(t, ev);
	}
	op->next = NULL;
	if (!op->parent) {
		end_alone(t, ev, status);
		return;
	}
	op->status = (int16_t)status;
	join(t, op->parent, status);
}

void op_strip(struct outbox *o)
{
	struct weir_event *over = NULL, **at = &o->head;

	while (*at) {
		struct weir_event *ev = *at;
		if (!op_is_over(ev)) {
			at = &ev->next;
			continue;
		}
		*at = ev->next;
		o->n--;
		ev->next = over;
		over = ev;
	}
	o->tail = at;
	/* Only now, since a parent that is resumed may be added to this outbox. */
	while (over) {
		struct weir_event *ev = over;
		over = ev->next;
		weir_event_finish(&ev, WEIR_ECANCELLED);
	}
}

/* ---- what a stage may read ---- */

struct weir_event *weir_ended(const struct weir_event *ev)
{
	const struct weir_op *op = op_of(ev);
	struct weir_event *child = op->children;

	for (uint32_t i = 0; i < op->n_unsent; i++)
		child = child->next;
	return child;
}

int weir_ended_status(const struct weir_event *ev)
{
	return op_of(ev)->status;
}

int weir_child_status(const struct weir_event *child)
{
	return op_of(child)->status;
}
