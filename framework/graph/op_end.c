/* SPDX-License-Identifier: MIT */
/* Operations: the end of children, and what their parents see of it; see graph/op.c. */
#include "base/probe.h"
#include "event/op.h"
#include "event/place.h"
#include "event/slab.h"
#include "graph/graph.h"
#include "stage/stage.h"

/* Release the memory of an event that has ended. */
static __attribute__((noinline)) void release(struct thread *t, struct weir_event *ev, int status)
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
		family_leave(family, 1, type->size);
}

/* Whether the event, which has ended, leaves nothing but memory behind. */
static inline bool is_bare(const struct weir_event *ev)
{
	return !ev->type->finish && !ev->type->payloads && op_of(ev)->flags & OP_SLAB;
}

/* Release the children at the front of `list` that have the type and the family of the first one, which is
 * bare. They are linked by `next`, too, as free memory is. Returns the others. */
static inline struct weir_event *release_run(struct thread *t, struct weir_event *list)
{
	const struct weir_event_type *type = list->type;
	struct weir_family *family = op_of(list)->family;
	struct weir_event *last, *child = list;
	uint32_t n = 0;

	static_assert(offsetof(struct weir_event, next) == 0, "see slab_give_list");
	do {
		last = child;
		n++;
		child = child->next;
	} while (child && child->type == type && op_of(child)->flags & OP_SLAB &&
		 op_of(child)->family == family);
	slab_give_list(&t->slab, list, last, n, type->size);
	if (WEIR_UNLIKELY(family != NULL))
		family_leave(family, (int)n, type->size);
	return child;
}

void op_free_list(struct thread *t, struct weir_event *list)
{
	while (list) {
		struct weir_event *child = list;
		if (WEIR_LIKELY(is_bare(child))) {
			list = release_run(t, list);
			continue;
		}
		list = op_of(child)->sibling;
		release(t, child, op_of(child)->status);
	}
}

void op_free_ended(struct thread *t, struct weir_op *op)
{
	struct weir_event *list = op->children;

	op->children = NULL;
	op->n_awaited = 0;
	op_free_list(t, list);
}

/* The number of the awaited children that have ended as WEIR_ECANCELLED. */
static WEIR_COLD uint64_t count_cancelled(const struct weir_op *op)
{
	uint64_t n = 0;

	for (const struct weir_event *c = op->children; c; c = c->next)
		n += op_of(c)->status == WEIR_ECANCELLED;
	return n;
}

/* Count `ev` as running, and its children as joined or cancelled. */
static inline void collect(struct book *book, const struct weir_event *ev)
{
	const struct weir_op *op = op_of(ev);
	uint64_t cancelled = WEIR_UNLIKELY(op->status != WEIR_OK) ? count_cancelled(op) : 0;

	book_add(&book->joined, op->n_awaited - cancelled);
	if (WEIR_UNLIKELY(cancelled > 0))
		book_add(&book->cancelled, cancelled);
	book_add(&book->class_book[ev->class_id].awaiting, (uint64_t)-1);
	book_add(&book->running, 1);
}

/* As resume, if memory is short: end the event. */
static WEIR_COLD void resume_none(struct thread *t, struct weir_event *ev)
{
	struct weir_stage *st = t->graph->stages[ev->stage];
	struct book *book = book_take(t, st->id);

	collect(book, ev);
	book_give(t, st->id, book);
	hold_record_part(t, ev);
	ev->state = WEIR_EVENT_RUNNING;
	stage_end_kept(t, st, &ev, WEIR_ENOMEM);
}

/* Let the stage have `ev`, all of whose children have ended, again. It occupies its slot until it is
 * in the queue. */
static __attribute__((noinline)) void resume(struct thread *t, struct weir_event *ev)
{
	struct local *l = local_find(t, ev->stage);

	if (WEIR_UNLIKELY(!l)) {
		resume_none(t, ev);
		return;
	}
	if (WEIR_UNLIKELY(stage_has_width(l->stage)))
		hold_record_part(t, ev);
	collect(&l->book, ev); /* which is published when the event is put back */
	event_set_state(ev, WEIR_EVENT_RUNNING);
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

/* `n` children of `parent` have ended with `status`. The parent may end in another thread as soon as
 * `pending` has been lowered. */
static inline void join(struct thread *t, struct weir_event *parent, uint32_t n, int status)
{
	struct weir_op *op = op_of(parent);

	if (WEIR_UNLIKELY(status != WEIR_OK))
		note_status(op, status);
	/* acquire: pairs with the decrements of other threads. If only these children are left, no other
	 * thread uses the parent. */
	if (__atomic_load_n(&op->pending, __ATOMIC_ACQUIRE) == n)
		op->pending = 0;
	else if (__atomic_sub_fetch(&op->pending, n, __ATOMIC_ACQ_REL) > 0)
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

/* As op_end, for an event with children of its own. */
static __attribute__((noinline)) void leave(struct thread *t, struct weir_op *op)
{
	WEIR_ASSERT(op->n_unsent == 0); /* else another thread has given it children (weir_child) */
	op_free_ended(t, op);
}

/* As op_end, for a child whose parent awaits the first of its children. If this child decides, the parent
 * is resumed with it as its only child. */
static __attribute__((noinline)) void end_racing(
    struct thread *t, struct weir_event *ev, int status)
{
	struct weir_op *op = op_of(ev);
	int result;
	struct weir_event *parent = family_raced(op->family, status, &result);

	if (op->children)
		leave(t, op);
	op->next = NULL;
	if (!parent) {
		end_alone(t, ev, status);
		return;
	}
	op->status = (int16_t)status;
	op->sibling = NULL;
	ev->next = NULL;
	op_of(parent)->status = (int16_t)result;
	op_of(parent)->children = ev;
	op_of(parent)->n_awaited = 1;
	op_of(parent)->pending = 0;
	resume(t, parent);
}

void op_end(struct thread *t, struct weir_event *ev, int status)
{
	struct weir_op *op = op_of(ev);

	if (WEIR_UNLIKELY(op->flags & OP_RACES)) {
		end_racing(t, ev, status);
		return;
	}
	if (WEIR_UNLIKELY(op->children != NULL))
		leave(t, op);
	op->next = NULL;
	if (!op->parent) {
		end_alone(t, ev, status);
		return;
	}
	op->status = (int16_t)status;
	ev->next = op->sibling;
	join(t, op->parent, 1, status);
}

int op_end_run(struct thread *t, struct weir_event **slot, int n, int status)
{
	const struct weir_event_type *type = slot[0]->type;
	struct weir_event *parent =
	    NULL; /* of the last `run` children, which it does not know to have ended */
	uint32_t run = 0;
	int i = 0;

	for (; i < n && slot[i]->type == type; i++) {
		struct weir_event *ev = slot[i];
		struct weir_op *op = (struct weir_op *)((uintptr_t)ev + type->op);
		if (!op->parent || op->children)
			break;
		if (op->parent != parent && run > 0) {
			join(t, parent, run, status);
			run = 0;
		}
		parent = op->parent;
		run++;
		probe_done(ev->stage, ev->class_id, status, ev->arrival_ns);
		slot[i] = NULL;
		ev->state = WEIR_EVENT_FINISHED;
		ev->next = op->sibling;
		op->next = NULL;
		op->status = (int16_t)status;
	}
	if (run > 0)
		join(t, parent, run, status);
	return i;
}

void op_strip(struct outbox *o)
{
	struct weir_event *over = NULL, **at = &o->head;
	struct op_check check = {0};

	while (*at) {
		struct weir_event *ev = *at;
		if (!op_check(&check, ev)) {
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
	WEIR_ASSERT(ev->type->op != 0);
	const struct weir_op *op = op_of(ev);

	return WEIR_UNLIKELY(op->n_unsent > 0) ? op->ended : op->children;
}

int weir_ended_status(const struct weir_event *ev)
{
	WEIR_ASSERT(ev->type->op != 0);
	return op_of(ev)->status;
}

int weir_child_status(const struct weir_event *child)
{
	return op_of(child)->status;
}
