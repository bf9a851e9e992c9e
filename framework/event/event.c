/* SPDX-License-Identifier: MIT */
/*
 * Initialising and finishing events.
 *
 * Every event ends in weir_event_finish_run, which weir_event_finish calls, too. This function
 * counts the outcome in the book of the stage that has the event, so that offered = completed +
 * shed + failed + in flight holds for each stage. It asserts that the event is in flight, since
 * finishing an event twice is always a bug.
 */
#include "event/local.h"
#include "event/op.h"

#include <string.h>

#include "base/probe.h"
#include "event/payload.h"
#include "event/place.h"
#include "trace/trail.h"
#include "trace/trail_tap.h"

_Thread_local struct thread *thread_current;

bool weir_event_trace(struct weir_event *ev, struct weir_trace *trace)
{
	if (!ev->type->trail)
		return false;
	trace_event(ev, thread_current ? thread_current->slowest : NULL, trace);
	return true;
}

void weir_event_init(struct weir_event *ev, const struct weir_event_type *type, int64_t now_ns)
{
	WEIR_ASSERT(ev->state == WEIR_EVENT_IDLE || ev->state == WEIR_EVENT_FINISHED);
	*ev = (struct weir_event){
	    .type = type,
	    .arrival_ns = now_ns,
	    .deadline_ns = WEIR_NO_DEADLINE,
	    .stage = WEIR_NO_STAGE,
	    .state = WEIR_EVENT_NEW,
	};
	if (WEIR_UNLIKELY(type->op)) {
		memset(op_of(ev), 0, sizeof(struct weir_op));
		op_init(op_of(ev), 0);
	}
	if (type->trail) {
		trail_of(ev)->n_hops = 0;
		trail_of(ev)->traced = false;
	}
	if (type->payloads)
		payloads_of(ev)->n = 0;
}

static void count_outcome(struct class_book *c, int status, uint64_t n)
{
	int shed = weir_shed_index(status);

	if (status == WEIR_OK)
		book_add(&c->completed, n);
	else if (shed >= 0)
		book_add(&c->shed[shed], n);
	else
		book_add(&c->failed, n);
}

/* Count the end of `n` events that have the same stage, class and state as `ev`. */
static void count_ends(struct thread *t, const struct weir_event *ev, int status, uint64_t n)
{
	if (ev->stage == WEIR_NO_STAGE)
		return;
	struct book *book = book_take(t, ev->stage);
	if (WEIR_UNLIKELY(ev->state == WEIR_EVENT_NEW)) { /* made by the stage, admitted by none */
		book_add(&book->running, -n);
		book_add(&book->class_book[ev->class_id].departed, n);
		book_give(t, ev->stage, book);
		return;
	}
	/* Subtract before the outcome is counted: a drain adds held events to those that have ended
	 * (is_quiet in graph/run.c), and must not count an event as both. */
	book_add(ev->state == WEIR_EVENT_HELD ? &book->held : &book->running, -n);
	count_outcome(&book->class_book[ev->class_id], status, n);
	book_give(t, ev->stage, book);
}

/* Offer an event of a traced type to the list of slowest events and, if any are active, to taps and
 * the export. *now_ns is the time at which the event ends; 0 lets this call read the clock. */
static void keep_slowest(struct slowest *s, struct weir_event *ev, int status, int64_t *now_ns)
{
	bool watched = slowest_watched(s);

	if (trail_of(ev)->n_hops == 0 && !watched)
		return;
	if (*now_ns == 0)
		*now_ns = clock_now_ns();
	if (WEIR_UNLIKELY(ev->type->op != 0) && op_of(ev)->parent)
		trail_leave(ev, *now_ns); /* the parent may be recorded, with its children */
	if (WEIR_UNLIKELY(watched))
		trail_end(s, ev, status, *now_ns);
	else
		slowest_offer(s, ev, status, *now_ns);
}

static void end(struct thread *t, struct weir_event **slot, int status, int stage, int64_t *now_ns)
{
	struct weir_event *ev = *slot;

	probe_done(stage, ev->class_id, status, ev->arrival_ns);
	ev->stage = (uint16_t)stage;
	if (ev->type->trail)
		keep_slowest(t->slowest, ev, status, now_ns);
	*slot = NULL;
	ev->state = WEIR_EVENT_FINISHED;
	if (ev->type->op && !op_is_plain(ev))
		op_end(t, ev, status);
	else
		payload_end(ev, status);
}

/* End at least one event of slot[0..n), n >= 1, which count alike. Returns their number. */
static inline int end_some(
    struct thread *t, struct weir_event **slot, int n, int status, int stage, int64_t *now_ns)
{
	struct weir_event *ev = *slot;
	int ended = 0;

	if (ev->type->op && !ev->type->trail && stage == ev->stage)
		ended = op_end_run(t, slot, n, status);
	if (ended > 0)
		return ended;
	end(t, slot, status, stage, now_ns);
	return 1;
}

static bool in_flight(const struct weir_event *ev)
{
	return ev->state == WEIR_EVENT_NEW || ev->state == WEIR_EVENT_RUNNING ||
	       ev->state == WEIR_EVENT_HELD;
}

static void let_go(struct thread *t, struct weir_event *const *ev, int n, bool cancel)
{
	for (int i = 0; i < n; i++)
		if (ev[i]->type->op)
			op_let_go(t, ev[i], cancel);
}

/* Whether one of ev[0..n) has a parent that awaits it. */
static inline bool any_awaited(struct weir_event *const *ev, int n)
{
	for (int i = 0; i < n; i++)
		if (WEIR_UNLIKELY(ev[i]->type->op) && op_of(ev[i])->parent)
			return true;
	return false;
}

/* Whether the event is a child that its parent has not sent yet (weir_child). */
static bool is_given(const struct weir_event *ev)
{
	const struct weir_event *parent = ev->type->op ? op_of(ev)->parent : NULL;

	return ev->state == WEIR_EVENT_NEW && parent && parent->state != WEIR_EVENT_AWAITING;
}

/* As count_ends, for ev[0..n), which are in no handler: held, or new. */
static __attribute__((noinline)) void count_other_ends(
    struct thread *t, struct weir_event *const *ev, int status, int n)
{
	for (int i = 0; i < n; i++)
		WEIR_ASSERT(in_flight(ev[i]) && !is_given(ev[i]));
	count_ends(t, ev[0], status, (uint64_t)n);
	if (ev[0]->state == WEIR_EVENT_HELD)
		hold_end(t, ev, n);
}

static void finish_run(struct thread *t, struct weir_event **ev, int n, int status)
{
	bool refused = t->refused_by != WEIR_NO_STAGE && weir_shed_index(status) >= 0;
	int64_t now_ns = 0;

	for (int i = 0; i < n;) {
		int run = 1;
		uint32_t place = event_place(ev[i]);
		while (i + run < n && event_place(ev[i + run]) == place)
			run++;
		/* A refused event is counted as shed only at the stage that refused it. The sender
		 * counts it as completed. */
		int counted = refused ? WEIR_OK : status;
		if (WEIR_LIKELY(ev[i]->state == WEIR_EVENT_RUNNING))
			count_ends(t, ev[i], counted, (uint64_t)run);
		else
			count_other_ends(t, ev + i, counted, run);
		int stage = refused ? t->refused_by : ev[i]->stage;
		for (int end_of_run = i + run; i < end_of_run;)
			i += end_some(t, ev + i, end_of_run - i, status, stage, &now_ns);
	}
}

void weir_event_finish_run(struct weir_event **ev, int n, int status)
{
	struct thread *t = thread_self();

	if (WEIR_UNLIKELY(t->unsent > 0))
		let_go(t, ev, n, status == WEIR_EDIED || status == WEIR_EDROPPED);
	/* For a drain (is_quiet in graph/run.c): between the end of a child and the count of its parent
	 * as running, the thread moves events. In a flush it does so anyway. */
	bool marks = any_awaited(ev, n) && !moves_going(t);
	if (WEIR_UNLIKELY(marks))
		moves_begin(t);
	finish_run(t, ev, n, status);
	if (WEIR_UNLIKELY(marks))
		moves_end(t);
}

void weir_event_finish(struct weir_event **slot, int status)
{
	struct weir_event *ev = *slot;

	if (!op_is_new(ev)) {
		weir_event_finish_run(slot, 1, status);
		return;
	}
	probe_done(WEIR_NO_STAGE, ev->class_id, status, ev->arrival_ns);
	*slot = NULL;
	ev->state = WEIR_EVENT_FINISHED;
	slab_give(&thread_self()->slab, ev, ev->type->size);
}
