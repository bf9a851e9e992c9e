/* SPDX-License-Identifier: MIT */
/*
 * Operations: making children, waiting, and continuing; see weir/op.h. graph/op_end.c has the other
 * half, the end of children.
 *
 *   RUNNING --weir_await--> AWAITING --last child ends--> RUNNING, requeued --> next(st, ev, n)
 *      |                                                        ^
 *      +-----weir_wait----> TICKETED --weir_resume--> HELD -----+
 *
 * The unsent children of an event are a list that only its handler touches. So a child is known to
 * other threads only when its parent waits already, and the parent cannot end before it: there is no
 * race between the two, and the only shared members are those that ended children write (struct
 * weir_op: `children`, `pending`, `status`).
 *
 * A child is in state NEW until a stage has admitted it. Its maker counts it as `spawned`, not as
 * offered, and as `departed` when it has been admitted elsewhere or has ended before that. A parent
 * that awaits is counted as `awaiting`, which is neither running nor held: a drain waits for it.
 */
#include <string.h>

#include <weir/log.h>

#include "event/op.h"
#include "event/place.h"
#include "graph/graph.h"
#include "stage/stage.h"
#include "trace/trail.h"
#include "trace/trail_tap.h"

/* ---- giving children ---- */

static inline bool is_in_hand(const struct weir_stage *st, const struct weir_event *ev)
{
	return ev->stage == st->id &&
	       (ev->state == WEIR_EVENT_RUNNING || ev->state == WEIR_EVENT_HELD);
}

/* Why `op` may not have one more child, which is to be sent to `outlet`, or 0. */
static inline int why_not(const struct weir_stage *st, const struct weir_op *op, int outlet)
{
	uint32_t limit = atomic_load_explicit(&st->children, memory_order_relaxed);

	if (WEIR_UNLIKELY(op->n_unsent >= limit || op->depth >= WEIR_GENERATIONS))
		return WEIR_ELIMIT;
	if (WEIR_UNLIKELY((unsigned)outlet >= (unsigned)st->n_outlets || !st->outlets[outlet].to))
		return WEIR_ELINK;
	return 0;
}

/* The child belongs to the trace of its parent, which gets one now if it has none, below the span of
 * the stage that makes the child. */
static WEIR_COLD void inherit_trace(struct weir_event *ev, struct weir_event *child)
{
	struct weir_trail *to = trail_of(child);

	if (to->traced)
		return;
	trace_event(ev, thread_current->slowest, &to->trace);
	to->trace.parent = to->trace.span;
	to->trace.span = 0;
	to->traced = true;
}

static inline void inherit(
    const struct weir_stage *st, const struct weir_event *ev, struct weir_event *child)
{
	event_set_place(child, event_place_of((unsigned)st->id, ev->class_id, WEIR_EVENT_NEW));
	child->session = ev->session;
	child->trace_id = child->trace_id ? child->trace_id : ev->trace_id;
	if (ev->deadline_ns < child->deadline_ns)
		child->deadline_ns = ev->deadline_ns;
}

/* Count `n` new events of the class, which the stage has made and is about to send. */
static void count_spawned(struct thread *t, int id, int class_id, uint64_t n)
{
	struct book *book = book_take(t, id);

	book_add(&book->class_book[class_id].spawned, n);
	book_add(&book->running, n);
	book_give(t, id, book);
}

/* Note that a child of `op` has failed before it was sent. */
static WEIR_COLD int fail(struct weir_op *op, struct weir_op *child, int status)
{
	if (op->unsent_status == 0)
		op->unsent_status = (int16_t)status;
	if (child) {
		child->flags |= OP_UNSENT;
		child->status = (int16_t)status;
		op->flags |= OP_MIXED;
	}
	return status;
}

/* Note that a child of `op` could not be made, or has been refused. */
static WEIR_COLD int lack(struct weir_op *op, int status)
{
	if (!(op->flags & OP_LACKS))
		thread_current->unsent++;
	op->flags |= OP_LACKS;
	return fail(op, NULL, status);
}

/* End the child in *slot, which is one too many for `op`. It is not kept until the parent has seen it,
 * so that the bounds hold for a handler that goes on making children, too. */
static WEIR_COLD int refuse(struct weir_stage *st, struct weir_op *op, struct weir_event **slot)
{
	struct thread *t = thread_current;
	struct weir_event *child = *slot;

	op_of(child)->maker = (uint16_t)st->id;
	count_spawned(t, st->id, child->class_id, 1);
	struct book *book = book_take(t, st->id);
	book_add(&book->children_refused, 1);
	book_give(t, st->id, book);
	weir_event_finish(slot, WEIR_ELIMIT);
	return lack(op, WEIR_ELIMIT);
}

/* Put `child`, which is to leave the stage by `outlet`, behind the unsent children of `ev`. It is ready to
 * be sent if `ev` awaits it. */
static inline void append(const struct weir_stage *st, struct weir_event *ev, struct weir_op *op,
    struct weir_event *child, struct weir_op *c, int outlet)
{
	struct weir_event *last = op->children;

	c->parent = ev;
	c->maker = (uint16_t)st->id;
	c->outlet = (uint16_t)outlet;
	c->depth = (uint8_t)(op->depth + 1);
	if (op->n_unsent++ == 0) {
		child->next = child;
		op->ended = last;
		thread_current->unsent++;
	} else {
		struct weir_op *l = op_of(last);
		child->next = last->next;
		last->next = child;
		l->sibling = child;
		if (WEIR_UNLIKELY(l->outlet != c->outlet))
			op->flags |= OP_MIXED;
	}
	op->children = child;
}

/* The rest of weir_child for a child that belongs to a trace or to a family, or that cannot be sent. */
static __attribute__((noinline)) int append_other(
    struct weir_stage *st, struct weir_event *ev, struct weir_event *child, int outlet)
{
	struct weir_op *op = op_of(ev), *c = op_of(child);

	if (child->type->trail && ev->type->trail)
		inherit_trace(ev, child);
	int rc = why_not(st, op, outlet);
	if (rc == 0 && op_checks() && op_is_over(ev))
		rc = WEIR_ECANCELLED;
	if (rc == WEIR_ELIMIT || (op->family && !c->family && !family_enter(op->family, child)))
		return refuse(st, op, &child);
	if (rc != 0)
		fail(op, c, rc);
	append(st, ev, op, child, c, outlet);
	return rc;
}

int weir_child(struct weir_stage *st, struct weir_event *ev, int outlet, struct weir_event **slot)
{
	struct weir_event *child = *slot;

	/* an event that awaits has left the handler */
	WEIR_ASSERT(ev != NULL && ev->type->op != 0 && is_in_hand(st, ev));
	struct weir_op *op = op_of(ev);
	if (WEIR_UNLIKELY(!child))
		return lack(op, WEIR_ENOMEM);
	const struct weir_event_type *type = child->type;
	struct weir_op *c = op_of(child);
	/* one that has been given or sent already has a maker */
	WEIR_ASSERT(child->state == WEIR_EVENT_NEW && type->op != 0 && c->maker == WEIR_NO_STAGE);
	inherit(st, ev, child);
	*slot = NULL;
	if (WEIR_UNLIKELY(op->family != NULL || type->trail != 0) ||
	    WEIR_UNLIKELY(why_not(st, op, outlet) != 0))
		return append_other(st, ev, child, outlet);
	append(st, ev, op, child, c, outlet);
	return 0;
}

/* ---- sending children ---- */

/* End a child that was not sent. It counts as spawned and departed at once. */
static WEIR_COLD void end_unsent(struct weir_event *child)
{
	struct weir_op *c = op_of(child);
	int status = c->status;

	c->status = WEIR_OK;
	weir_event_finish(&child, status);
}

/* The unsent children of an event, linked by `sibling` and by `next`. */
struct unsent {
	struct weir_event *first, *last; /* NULL if there are none */
	uint32_t n;
	bool mixed; /* they cannot be sent by the outlet of the first one (OP_MIXED) */
};

/* Take the unsent children of `op`. Those that have ended stay. */
static inline struct unsent take_unsent(struct thread *t, struct weir_op *op)
{
	struct unsent u = {.n = op->n_unsent, .mixed = op->flags & OP_MIXED};

	t->unsent -= (u.n > 0) + (op->flags & OP_LACKS ? 1U : 0U);
	op->flags &= (uint8_t) ~(OP_LACKS | OP_MIXED);
	if (u.n == 0)
		return u;
	u.last = op->children;
	u.first = u.last->next;
	op->children = op->ended;
	op->next = NULL;
	op->n_unsent = 0;
	u.last->next = NULL;
	return u;
}

/* Send the children of `list` one by one, or end those that cannot be sent. `parent` awaits them, or is
 * NULL. When the last one has ended, the parent may be in another thread, but none of its children has
 * been released. */
static __attribute__((noinline)) void send_each(
    struct thread *t, struct local *l, struct weir_event *list, struct weir_event *parent)
{
	while (list) {
		struct weir_event *child = list;
		struct weir_op *c = op_of(child);
		list = c->sibling;
		c->parent = parent;
		/* without a local, each has the flag */
		if (WEIR_UNLIKELY(!l || c->flags & OP_UNSENT))
			end_unsent(child);
		else
			outbox_add(t, &l->outbox[c->outlet], child);
	}
}

void op_let_go(struct thread *t, struct weir_event *ev, bool cancel)
{
	struct weir_op *op = op_of(ev);

	struct unsent u = take_unsent(t, op);
	op->unsent_status = 0;
	if (u.n == 0)
		return;
	int id = op_of(u.first)->maker;
	struct local *l = local_find(t, id);
	count_spawned(t, id, u.first->class_id, u.n);
	for (struct weir_event *c = u.first; c && (cancel || !l); c = op_of(c)->sibling)
		if (!(op_of(c)->flags & OP_UNSENT)) {
			op_of(c)->flags |= OP_UNSENT;
			op_of(c)->status = cancel ? WEIR_ECANCELLED : WEIR_ENOMEM;
		}
	send_each(t, l, u.first, NULL);
}

/* ---- waiting ---- */

/* Note that the stage has events with continuations (stage_continue). */
static void note_continues(struct weir_stage *st)
{
	if (WEIR_UNLIKELY(!atomic_load_explicit(&st->continues, memory_order_relaxed)))
		atomic_store_explicit(&st->continues, true, memory_order_relaxed);
}

/* Count `ev`, which was in a handler or held, as awaiting, and `n` new children of it as spawned. It goes
 * on occupying a slot. */
static inline void count_awaiting(struct local *l, struct weir_event *ev, uint64_t n)
{
	bool held = ev->state == WEIR_EVENT_HELD;
	struct book *book = &l->book;
	struct class_book *by_class = &book->class_book[ev->class_id];

	book_add(&by_class->spawned, n);
	book_add(&by_class->awaiting, 1);
	book_add(&book->running, held ? n : n - 1);
	event_set_state(ev, WEIR_EVENT_AWAITING);
	if (WEIR_LIKELY(!held)) {
		stage_keep(l->thread, l->stage, ev);
		return; /* the end of the batch publishes the changes */
	}
	book_add(&book->held, (uint64_t)-1);
	book_changed(book);
}

/* End `*slot`, which cannot wait because memory is short, and its unsent children. */
static WEIR_COLD void fail_await(struct thread *t, struct weir_event **slot)
{
	op_let_go(t, *slot, true);
	weir_event_finish(slot, WEIR_ENOMEM);
}

/* Report that the stage awaits events of an outlet that `ops->children` does not list: the checks of the
 * configuration do not know of it. */
static WEIR_COLD void not_listed(struct weir_stage *st, int outlet)
{
	if (outlet < st->n_outlets && weir_log_first(&st->children_logged))
		weir_log(WEIR_LOG_ERROR,
		    "stage '%s' (%s) awaits events that it sends to '%s': set their bit in "
		    "weir_stage_ops.children, so that 'weir check' sees cycles",
		    st->name, st->ops->name, st->ops->outlets[outlet].name);
}

static inline bool is_listed(const struct weir_stage *st, int outlet)
{
	return outlet < 32 && st->ops->children >> outlet & 1;
}

/* Let `*slot`, whose continuation is `next`, wait for the children in its list. `first`: until one has
 * succeeded. */
static __attribute__((noinline)) void await_any(
    struct weir_stage *st, struct weir_event **slot, weir_next *next, bool first)
{
	struct thread *t = thread_self();
	struct weir_event *ev = *slot;
	struct weir_op *op = op_of(ev);
	struct local *l = local_find(t, st->id);

	if (WEIR_UNLIKELY(!l) || (first && op->n_unsent > 0 && !family_race(ev))) {
		fail_await(t, slot);
		return;
	}
	struct unsent u = take_unsent(t, op);
	if (op->children)
		op_free_ended(t, op);
	op->next = next;
	op->status = op->unsent_status;
	op->unsent_status = 0;
	note_continues(st);
	if (u.n == 0) {
		weir_requeue(st, slot);
		return;
	}
	*slot = NULL;
	if (WEIR_UNLIKELY(ev->type->trail != 0))
		trail_leave(ev, clock_now_ns());
	if (WEIR_UNLIKELY(!is_listed(st, op_of(u.first)->outlet)))
		not_listed(st, op_of(u.first)->outlet);
	op->pending = u.n;
	if (!first) { /* otherwise the children do not belong to the event, but to their family */
		op->n_awaited = u.n;
		op->children = u.first;
	}
	count_awaiting(l, ev, u.n);
	/* The last child of the list may end here, which resumes the event. */
	if (WEIR_UNLIKELY(u.mixed || first))
		send_each(t, l, u.first, first ? NULL : ev);
	else
		outbox_add_run(t, &l->outbox[op_of(u.first)->outlet], u.first, u.last, (int)u.n);
}

/* Whether `ev` is to wait for children that all leave by one outlet, and nothing else is to be noted. */
static inline bool is_simple(
    const struct weir_stage *st, const struct weir_event *ev, const struct weir_op *op)
{
	return op->n_unsent > 0 && !(op->flags & (OP_LACKS | OP_MIXED)) && !ev->type->trail &&
	       atomic_load_explicit(&st->continues, memory_order_relaxed);
}

void weir_await(struct weir_stage *st, struct weir_event **slot, weir_next *next)
{
	struct thread *t = thread_self();
	struct weir_event *ev = *slot;

	WEIR_ASSERT(ev != NULL && next != NULL && ev->type->op != 0 && is_in_hand(st, ev));
	struct weir_op *op = op_of(ev);
	struct local *l = t->local[st->id];
	if (WEIR_UNLIKELY(!l || !is_simple(st, ev, op))) {
		await_any(st, slot, next, false);
		return;
	}
	struct weir_event *last = op->children, *first = last->next, *ended = op->ended;
	uint32_t n = op->n_unsent;
	int outlet = op_of(last)->outlet;
	if (WEIR_UNLIKELY(!is_listed(st, outlet)))
		not_listed(st, outlet);
	*slot = NULL;
	t->unsent--;
	op->next = next;
	op->status = WEIR_OK;
	op->children = first;
	op->n_unsent = 0;
	op->pending = op->n_awaited = n;
	count_awaiting(l, ev, n);
	outbox_add_run(t, &l->outbox[outlet], first, last, (int)n);
	if (ended)
		op_free_list(t, ended);
}

void weir_await_first(struct weir_stage *st, struct weir_event **ev, weir_next *next)
{
	WEIR_ASSERT(*ev != NULL && next != NULL && (*ev)->type->op != 0 && is_in_hand(st, *ev));
	await_any(st, ev, next, true);
}

uint64_t weir_wait(
    struct weir_stage *st, struct weir_event **slot, weir_next *next, int64_t until_ns)
{
	struct weir_event *ev = *slot;

	WEIR_ASSERT(ev != NULL && next != NULL && ev->type->op != 0);
	if (WEIR_UNLIKELY(thread_self()->unsent > 0))
		op_let_go(thread_self(), ev, false); /* before `next` is set: it has been `ended` */
	op_of(ev)->next = next;
	note_continues(st);
	return weir_hold_until(st, slot, until_ns);
}

struct weir_event *weir_hold_claim(struct weir_stage *st, uint64_t ticket)
{
	struct weir_event *ev = graph_ticket_claim(st, ticket);

	/* Only weir_resume continues. The next stage of the event must not find a continuation. */
	if (ev && ev->type->op)
		op_of(ev)->next = NULL;
	return ev;
}

bool weir_resume(struct weir_stage *st, uint64_t ticket)
{
	struct weir_event *ev = graph_ticket_claim(st, ticket);

	if (!ev)
		return false;
	weir_requeue(st, &ev);
	return true;
}

/* ---- continuing ---- */

static weir_next *next_of(const struct weir_event *ev)
{
	return ev->type->op ? op_of(ev)->next : NULL;
}

/* Whether the stage handles the events of a key in the order of its queue. */
static bool is_ordered(const struct weir_stage *st)
{
	return st->sink.queue.leasing || st->sink.queue.map;
}

/* The number of events at the front of ev[0..n) that have the continuation of the first. */
static int count_run(struct weir_event *const *ev, int n)
{
	weir_next *next = next_of(ev[0]);
	int same = 1;

	while (same < n && next_of(ev[same]) == next)
		same++;
	return same;
}

/* Move the events of ev[0..n) that have the continuation of the first to the front; both parts keep
 * their order. Returns their number. */
static int gather(struct weir_event **ev, int n)
{
	weir_next *next = next_of(ev[0]);
	struct weir_event *all[WEIR_BATCH_MAX];
	int same = 0;

	memcpy(all, ev, (size_t)n * sizeof(*ev));
	for (int i = 0; i < n; i++)
		if (next_of(all[i]) == next)
			ev[same++] = all[i];
	for (int i = 0, at = same; at < n; i++)
		if (next_of(all[i]) != next)
			ev[at++] = all[i];
	return same;
}

void stage_continue(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int at = 0; at < n;) {
		weir_next *next = next_of(ev[at]);
		int same = count_run(ev + at, n - at);
		if (WEIR_UNLIKELY(same < n - at) && !is_ordered(st))
			same = gather(ev + at, n - at);
		for (int i = at; next && i < at + same; i++)
			op_of(ev[i])->next = NULL;
		(next ? next : st->ops->handle)(st, ev + at, same);
		at += same;
	}
}
