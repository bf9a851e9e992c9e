/* SPDX-License-Identifier: MIT */
/*
 * Runs batches through a stage, and implements the functions that its callbacks may call.
 *
 * stage_run() calls ops->handle, in a handler thread of the pool or, for an inline stage, in the
 * sender's thread. (For a stage with a loop, it passes the events to the loop, whose thread calls
 * ops->handle: graph/stage_loop.c.) stage_run() also drops events that expired in the queue, and
 * records the waits of events with the same time stamp together. The clock is read once per batch:
 * the end of a batch is the start of the next.
 */
#include "stage/stage.h"

#include <string.h>

#include <weir/graph.h>
#include <weir/log.h>

#include "base/clock.h"
#include "base/probe.h"
#include "event/op.h"
#include "event/place.h"
#include "stage/call.h"
#include "trace/trail.h"

struct weir_graph *stage_graph(const struct weir_stage *st)
{
	return st->graph;
}

static struct local *local_of(const struct weir_stage *st)
{
	return thread_self()->local[st->id];
}

/* Finish events that are past their deadline, have too little time left to be worth handling, or
 * have waited longer than the policy allows. Move the remaining events to the front and return
 * their number. Requeued events are never dropped and keep their state; their number is added to
 * *again. */
static int drop_expired(
    struct sink *sink, struct weir_event **ev, int n, int64_t now_ns, int *again)
{
	int64_t least_ns = atomic_load_explicit(&sink->least_left_ns, memory_order_relaxed);
	int64_t most_ns = atomic_load_explicit(&sink->most_wait_ns, memory_order_relaxed);
	/* An event stays if its deadline is `due_ns` or later, and it was queued at `from_ns` or
	 * later. */
	int64_t due_ns, from_ns = now_ns - most_ns;
	int kept = 0;

	if (WEIR_UNLIKELY(op_checks()))
		return stage_drop_some(sink, ev, 0, n, now_ns, again);
	if (__builtin_add_overflow(now_ns, least_ns > 0 ? least_ns : 1, &due_ns))
		due_ns = WEIR_NO_DEADLINE;

	for (; kept < n; kept++) {
		struct weir_event *e = ev[kept];
		if (WEIR_UNLIKELY(e->state == WEIR_EVENT_AGAIN)) {
			(*again)++;
			continue;
		}
		if (WEIR_UNLIKELY(e->deadline_ns < due_ns || e->queued_ns < from_ns))
			return stage_drop_some(sink, ev, kept, n, now_ns, again);
		event_set_state(e, WEIR_EVENT_RUNNING);
	}
	return n;
}

/* Record the waits of a batch. Events that were queued together have the same time stamp and are
 * recorded in one step. */
static void record_waits(const char *stage, struct local *l, struct weir_event **ev, int n,
    int64_t now_ns, int *per_class)
{
	for (int i = 0; i < n;) {
		int run = 1;
		uint8_t c = ev[i]->class_id;
		int64_t queued_ns = ev[i]->queued_ns;
		while (i + run < n && ev[i + run]->class_id == c &&
		       ev[i + run]->queued_ns == queued_ns)
			run++;
		hist_book_add(&l->times[c].wait, now_ns - queued_ns, (uint64_t)run);
		probe_dequeue(stage, c, run, now_ns - queued_ns);
		per_class[c] += run;
		i += run;
	}
}

/* Record waits of 0 for a batch of an inline stage. The events come straight from admission, so
 * they have neither waited nor expired. */
static void record_no_waits(
    struct local *l, struct weir_event **ev, int n, int n_classes, int *per_class)
{
	if (n_classes == 1)
		per_class[0] = n;
	for (int i = 0; n_classes > 1 && i < n; i++)
		per_class[ev[i]->class_id]++;
	for (int c = 0; c < n_classes; c++)
		if (per_class[c])
			hist_book_add(&l->times[c].wait, 0, (uint64_t)per_class[c]);
}

/* Charge the time of an inline stage's batch, which ran in the sender's thread. If that is a
 * handler thread of a pool, the time counts towards the stage whose batch the thread took from a
 * queue. */
static void charge_sender(struct thread *t, const struct served *b, int n_classes)
{
	for (int c = 0; t->pool && c < n_classes; c++)
		t->behind_ns[c] +=
		    b->per_class[c] == b->n ? b->took_ns : b->took_ns * b->per_class[c] / b->n;
	t->behind = t->pool != NULL;
}

/* Whether the batch has emitted events to an inline stage. */
static bool sends_inline(const struct thread *t)
{
	for (const struct outbox *o = t->dirty; o; o = o->next)
		if (o->outlet != OUTLET_AGAIN && o->sink && o->sink->inlined)
			return true;
	return false;
}

/* In a stage with a width, the service of an event that the handler has held lasts until the end of
 * the hold (hold_end), and an event is counted as handled when it leaves the stage. */
static void leave_out_stays(struct thread *t, struct served *b, int n_classes)
{
	memset(b->again, 0, sizeof(b->again));
	if (!t->stays)
		return;
	for (int c = 0; c < n_classes; c++) {
		b->per_class[c] -= t->stay_held[c];
		b->again[c] = t->stay_queued[c];
	}
	hold_forget_stays(t);
}

/* Let thread_settle record the batch. Member by member: a copy of the whole struct would wait for the
 * stores that have just written its parts. */
static inline void put_off(struct thread *t, const struct served *b, int n_classes)
{
	for (int c = 0; c < n_classes; c++) {
		t->late.per_class[c] = b->per_class[c];
		t->late.again[c] = b->again[c];
	}
	t->late.n = b->n;
	t->late.took_ns = b->took_ns;
}

/* Record the service time of a batch. If the batch has emitted events to inline stages, these
 * stages still have to run in this thread, and their time is part of the cost of the batch. Such a
 * batch is recorded later, when that time is known (thread_settle). */
static void tell_service(struct sink *sink, struct thread *t, struct served *b)
{
	int n_classes = sink->queue.n_classes;

	/* whether the batch ran in the thread of a sender */
	bool foreign = sink->inlined || (sink->direct && t->pool != sink->pool);

	if (foreign)
		charge_sender(t, b, n_classes);
	if (WEIR_UNLIKELY(stage_has_width(sink->stage)))
		leave_out_stays(t, b, n_classes);
	if (!foreign && t->pool && sends_inline(t)) {
		put_off(t, b, n_classes);
		return;
	}
	service_record(t->local[sink->id], b, n_classes, 0);
	if (WEIR_UNLIKELY(sink->policy->tick && !sink_mean_cost_ns(sink)) &&
	    !stage_has_width(sink->stage))
		sink_first_cost(sink, b->took_ns / b->n);
}

/* Finish the events that the handler left in `ev`, and count them as unhandled. Such events
 * indicate a bug in the handler, but must not be leaked. */
WEIR_HOT void stage_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int left = 0;

	if (WEIR_LIKELY(!atomic_load_explicit(&st->continues, memory_order_relaxed)))
		st->ops->handle(st, ev, n);
	else
		stage_continue(st, ev, n);
	for (int i = 0; i < n; i++) {
		if (ev[i]) {
			weir_event_finish(&ev[i], WEIR_EDROPPED);
			left++;
		}
	}
	if (WEIR_LIKELY(left == 0))
		return;
	struct book *book = book_take(thread_self(), st->id);
	book_add(&book->unhandled, (uint64_t)left);
	book_give(thread_self(), st->id, book);
	if (weir_log_first(&st->unhandled_logged))
		weir_log(WEIR_LOG_ERROR,
		    "stage '%s' (%s) left %d of %d events behind, which end as unhandled; a "
		    "handler must emit, finish or hold each event",
		    st->name, st->ops->name, left, n);
}

/* Mark all events as running, add the number of requeued events of class c to per_class[c], and
 * count them. Returns their number. */
static int run_again(struct local *l, struct weir_event **ev, int n, int *per_class)
{
	int64_t start_ns = l->thread->now_ns, wait_ns = 0;
	int again = 0;

	for (int i = 0; i < n; i++) {
		if (ev[i]->state == WEIR_EVENT_AGAIN) {
			per_class[ev[i]->class_id]++;
			wait_ns += start_ns > ev[i]->queued_ns ? start_ns - ev[i]->queued_ns : 0;
			again++;
		}
		event_set_state(ev[i], WEIR_EVENT_RUNNING);
	}
	book_add(&l->book.restarted, (uint64_t)again);
	book_add(&l->book.again_ns, (uint64_t)wait_ns);
	return again;
}

/* Fail all events, because the stage's thread_init has failed in this thread (thread_prepare). This
 * happens only in a drain thread, or in an I/O thread that replaced one that exited
 * unexpectedly. */
static WEIR_COLD void fail_all(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (weir_log_first(&st->refused_logged))
		weir_log(WEIR_LOG_ERROR,
		    "thread_init of stage '%s' (%s) failed in thread '%s': the stage's events in "
		    "this thread fail (logged once)",
		    st->name, st->ops->name, thread_self()->name);
	/* Requeued events are in state WEIR_EVENT_AGAIN, which weir_event_finish_run does not
	 * accept. */
	for (int i = 0; i < n; i++)
		ev[i]->state = WEIR_EVENT_RUNNING;
	book_add(&thread_self()->local[st->id]->book.dropped, (uint64_t)n);
	weir_event_finish_run(ev, n, WEIR_EFAILED);
	hold_settle(thread_self());
}

WEIR_HOT void stage_run(struct sink *sink, struct weir_event **ev, int n)
{
	struct weir_stage *st = sink->stage;
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];
	struct served b = {0};
	int64_t start_ns = t->now_ns;
	int again = 0;

	call_next(t);
	book_add(&l->book.running, (uint64_t)n);
	if (WEIR_UNLIKELY(!l->thread_ready) && !thread_prepare(l)) {
		fail_all(st, ev, n);
		return;
	}
	/* Before events are dropped, since this is the last hop of the dropped ones. */
	if (!st->type || st->type->trail)
		trail_note(ev, n, st->id, start_ns, !sink->inlined);
	if (!sink->inlined) {
		n = drop_expired(sink, ev, n, start_ns, &again);
		int left = n && sink->policy->drop ? stage_drop_late(sink, ev, n, t->now_ns) : n;
		ev += n - left;
		n = left;
	} else if (WEIR_UNLIKELY(op_checks())) {
		n = stage_drop_over(sink, ev, n);
	}
	if (WEIR_UNLIKELY(n == 0)) {
		hold_settle(t);
		book_changed(&l->book);
		return;
	}
	if (sink->inlined) {
		again = ev[0]->state == WEIR_EVENT_AGAIN; /* the same for the whole batch */
		record_no_waits(l, ev, n, sink->queue.n_classes, b.per_class);
	} else {
		record_waits(sink->name, l, ev, n, start_ns, b.per_class);
	}
	if (WEIR_UNLIKELY(again > 0))
		again = run_again(l, ev, n, b.again);
	book_add(&l->book.started, (uint64_t)(n - again));
	call_begin(sink, l, ev, n);
	probe_handle_start(sink->name, n);
	(WEIR_UNLIKELY(st->to_loop != NULL) ? st->to_loop : stage_handle)(st, ev, n);
	b.took_ns = call_end(sink, l, n);
	probe_handle_end(sink->name, n, b.took_ns);
	b.n = n;
	tell_service(sink, t, &b);
	call_over(l);
}

void stage_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, const int *reason)
{
	struct thread *t = thread_self();

	t->refused_by = st->outlets[outlet].to->id;
	atomic_store_explicit(&t->refusing, st, memory_order_relaxed);
	t->run_ev = ev; /* used if the thread exits in ops->refused */
	t->run_n = n;
	for (int i = 0; i < n;) {
		int run = 1;
		while (i + run < n && reason[i + run] == reason[i])
			run++;
		if (st->ops->refused)
			st->ops->refused(st, outlet, ev + i, run, reason[i]);
		for (int k = i; k < i + run; k++)
			if (ev[k])
				weir_event_finish(&ev[k], reason[i]);
		i += run;
	}
	t->run_n = 0;
	t->refused_by = WEIR_NO_STAGE;
	atomic_store_explicit(&t->refusing, NULL, memory_order_relaxed);
}

/* ---- what callbacks may call ---- */

static void unlinked(struct weir_stage *st, int outlet, struct weir_event **ev)
{
	bool known = outlet >= 0 && outlet < st->n_outlets;

	if (known && st->outlets[outlet].any) {
		weir_event_finish(ev, WEIR_OK);
		return;
	}
	if (weir_log_first(&st->unlinked_logged))
		weir_log(WEIR_LOG_ERROR, "stage '%s' (%s) emitted to %s%s%s, which is not linked",
		    st->name, st->ops->name,
		    known ? "outlet '" : "an outlet with a number out of range",
		    known ? st->outlets[outlet].name : "", known ? "'" : "");
	weir_event_finish(ev, WEIR_ELINK);
}

/* The way of all other events: see weir_emit. */
static __attribute__((noinline)) void emit_any(
    struct thread *t, struct weir_stage *st, int outlet, struct weir_event **slot)
{
	struct local *l = local_find(t, st->id);
	struct weir_event *ev = *slot;

	if (WEIR_UNLIKELY(t->unsent > 0) && ev->type->op)
		op_let_go(t, ev, false);
	if (WEIR_UNLIKELY(ev->state == WEIR_EVENT_HELD))
		hold_end(t, slot, 1);
	if (ev->state == WEIR_EVENT_NEW || WEIR_UNLIKELY(ev->state == WEIR_EVENT_HELD))
		stage_begin(t, st, ev);
	if (WEIR_UNLIKELY(!l)) { /* no memory for an outbox */
		weir_event_finish(slot, WEIR_ENOMEM);
		return;
	}
	WEIR_ASSERT((ev->state == WEIR_EVENT_RUNNING || ev->state == WEIR_EVENT_NEW) &&
		    ev->stage == st->id);
	if (WEIR_UNLIKELY(outlet < 0 || outlet >= st->n_outlets || !st->outlets[outlet].to)) {
		unlinked(st, outlet, slot);
		return;
	}
	*slot = NULL;
	outbox_add(t, &l->outbox[outlet], ev);
}

/* The outbox of the outlet in local `l` of stage `st`, if the outlet is linked; else NULL. */
static inline struct outbox *linked_outbox(struct local *l, int outlet)
{
	if (WEIR_UNLIKELY(!l || outlet < 0 || outlet >= l->n_outboxes))
		return NULL;
	struct outbox *o = &l->outbox[outlet];
	return WEIR_LIKELY(o->sink != NULL) ? o : NULL;
}

/* Emit *slot, which a handler of the stage has got, and has neither held nor waited for. Returns
 * false, and does nothing, if it is another event, or if the thread has children to send. */
static inline bool emit_handled(
    struct thread *t, const struct weir_stage *st, struct outbox *o, struct weir_event **slot)
{
	struct weir_event *ev = *slot;

	if (WEIR_UNLIKELY(ev->state != WEIR_EVENT_RUNNING || ev->stage != st->id || t->unsent > 0))
		return false;
	*slot = NULL;
	outbox_add(t, o, ev);
	return true;
}

WEIR_HOT void weir_emit(struct weir_stage *st, int outlet, struct weir_event **slot)
{
	struct thread *t = thread_self();
	struct outbox *o = linked_outbox(t->local[st->id], outlet);

	if (WEIR_UNLIKELY(!o || !emit_handled(t, st, o, slot)))
		emit_any(t, st, outlet, slot);
}

WEIR_HOT void weir_emit_run(struct weir_stage *st, int outlet, struct weir_event **ev, int n)
{
	struct thread *t = thread_self();
	struct outbox *o = linked_outbox(t->local[st->id], outlet);

	for (int i = 0; i < n; i++)
		if (WEIR_UNLIKELY(!o || !emit_handled(t, st, o, &ev[i])))
			emit_any(t, st, outlet, &ev[i]);
}

int weir_outlet_find(const struct weir_stage *st, const char *name)
{
	for (int i = 0; i < st->n_outlets; i++)
		if (strcmp(st->outlets[i].name, name) == 0)
			return i;
	return -1;
}

const char *weir_outlet_name(const struct weir_stage *st, int outlet)
{
	return outlet >= 0 && outlet < st->n_outlets ? st->outlets[outlet].name : NULL;
}

bool weir_outlet_linked(const struct weir_stage *st, int outlet)
{
	return outlet >= 0 && outlet < st->n_outlets && st->outlets[outlet].to != NULL;
}

void *weir_thread_state(const struct weir_stage *st)
{
	return local_of(st)->thread_state;
}

const struct weir_stage_ops *weir_stage_type(const struct weir_stage *st)
{
	return st->ops;
}

const char *weir_stage_name(const struct weir_stage *st)
{
	return st->name;
}

int64_t weir_now_ns(const struct weir_stage *st)
{
	(void)st;
	return thread_current ? thread_current->now_ns : clock_now_ns();
}

int64_t weir_remaining_ns(const struct weir_stage *st, const struct weir_event *ev)
{
	return weir_event_left_ns(ev, weir_now_ns(st));
}

void weir_count(struct weir_stage *st, int row, int64_t n)
{
	WEIR_ASSERT(row >= 0 && row < WEIR_METRICS_MAX);
	struct thread *t = thread_current;
	if (WEIR_UNLIKELY(!t || t->graph != st->graph)) {
		book_count_common(st->graph, st->id, row, n);
		return;
	}
	struct book *book = book_take(t, st->id);
	book_add(&book->metric[row], (uint64_t)n);
	book_give(t, st->id, book);
}
