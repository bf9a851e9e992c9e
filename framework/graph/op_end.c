/* SPDX-License-Identifier: MIT */
/* Operations: the end of children, and what their parents see of it; see graph/op.c. */
#include "event/op.h"
#include "event/slab.h"
#include "graph/graph.h"
#include "stage/stage.h"

/* Release the memory of an event that has ended. */
static void release(struct thread *t, struct weir_event *ev, int status)
{
	const struct weir_event_type *type = ev->type;
	bool slab = op_of(ev)->flags & OP_SLAB;

	if (type->finish)
		type->finish(ev, status);
	if (slab)
		slab_give(&t->slab, ev, type->size);
}

void op_free_ended(struct thread *t, struct weir_event *ev)
{
	struct weir_op *op = op_of(ev);
	struct weir_event *list = op->children;

	op->children = NULL;
	while (list) {
		struct weir_event *child = list;
		list = child->next;
		release(t, child, op_of(child)->status);
	}
}

/* Let the stage have `ev`, all of whose children have ended, again. It occupies its slot until it is
 * in the queue. */
static void resume(struct thread *t, struct weir_event *ev)
{
	struct weir_stage *st = t->graph->stages[ev->stage];
	struct local *l = local_find(t, st->id);

	if (stage_has_width(st))
		hold_record_part(t, ev);
	struct book *book = book_take(t, st->id);
	book_add(&book->awaiting, (uint64_t)-1);
	book_add(&book->running, 1);
	book_give(t, st->id, book);
	ev->state = WEIR_EVENT_RUNNING;
	if (WEIR_UNLIKELY(!l)) {
		hold_count(t, st->id, ev->class_id, -1);
		weir_event_finish(&ev, WEIR_ENOMEM);
		return;
	}
	l->again_held[ev->class_id]++;
	l->again_holds = true;
	outbox_add(t, &l->again, ev);
}

static void note_status(struct weir_op *op, int status)
{
	int16_t none = WEIR_OK;

	if (status != WEIR_OK && __atomic_load_n(&op->status, __ATOMIC_RELAXED) == WEIR_OK)
		__atomic_compare_exchange_n(
		    &op->status, &none, (int16_t)status, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Give `child`, which has ended, to its parent. The parent may end in another thread as soon as
 * `pending` has been lowered. */
static void join(struct thread *t, struct weir_event *parent, struct weir_event *child)
{
	struct weir_op *op = op_of(parent);

	note_status(op, op_of(child)->status);
	/* acquire: pairs with the decrements below. Only this child is left, so no other thread uses
	 * the parent. */
	if (__atomic_load_n(&op->pending, __ATOMIC_ACQUIRE) == 1) {
		child->next = op->children;
		op->children = child;
		op->pending = 0;
		resume(t, parent);
		return;
	}
	child->next = __atomic_load_n(&op->children, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
	    &op->children, &child->next, child, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		continue;
	if (__atomic_sub_fetch(&op->pending, 1, __ATOMIC_ACQ_REL) == 0)
		resume(t, parent);
}

static void count_end(struct thread *t, const struct weir_op *op, int status)
{
	struct book *book = book_take(t, op->maker);

	if (status == WEIR_ECANCELLED)
		book_add(&book->cancelled, 1);
	else
		book_add(op->parent ? &book->joined : &book->orphaned, 1);
	book_give(t, op->maker, book);
}

void op_end(struct thread *t, struct weir_event *ev, int status)
{
	struct weir_op *op = op_of(ev);
	struct weir_event *parent = op->parent;
	struct weir_family *family = op->family;

	op_free_ended(t, ev);
	op->family = NULL;
	op->next = NULL;
	if (op->maker != WEIR_NO_STAGE)
		count_end(t, op, status);
	if (parent) {
		op->status = (int16_t)status;
		join(t, parent, ev);
	} else {
		release(t, ev, status);
	}
	weir_family_put(family);
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

	return op->n_unsent == 0 ? op->children : NULL;
}

int weir_ended_status(const struct weir_event *ev)
{
	return op_of(ev)->status;
}

int weir_child_status(const struct weir_event *child)
{
	return op_of(child)->status;
}
