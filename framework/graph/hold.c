/* SPDX-License-Identifier: MIT */
/*
 * Counts the held events of a stage in the counters of its queue; see local.h.
 *
 * For a stage with a width, the service of an event lasts from the start of the batch that held it
 * to the end of the hold. Until then, `queued_ns` of the event is the start of the service; the
 * member is free for that, since the wait has been recorded. The thread that ends the hold records
 * the time in its own book of the stage. When the ticket of an event has expired, `queued_ns` is
 * negated, so that the width policy does not take this time for a service time of the other side,
 * the server or database that the stage waits for.
 *
 * Once the other side has served a held event (weir_hold_served), it is not among the held events any more,
 * and its time has been recorded.
 */
#include <string.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "event/local.h"
#include "stage/stage.h"

/* Value of `queued_ns` of a held event that the other side has refused. */
#define REFUSED_NS INT64_MAX
/* Value of `queued_ns` of a held event that the other side has served. */
#define SERVED_NS INT64_MIN
/* Least service time: policies compare ratios of times. */
#define LEAST_NS NS_PER_US

void hold_count(struct thread *t, int id, int class_id, int n)
{
	stage_count_held(t, t->graph->stages[id], class_id, n);
}

/* Return when the service of an event that ends now has ended. For an I/O thread, this is when the other side
 * can have answered at the earliest: a busy loop has found the answer only after its last iteration. Otherwise
 * a loop with many connections would look like a slow other side, and the width would be narrowed. t->now_ns
 * of another thread is the start of its batch, which may be long ago. */
static int64_t now_of(const struct thread *t)
{
	return t->link && !t->core ? t->happened_ns : clock_now_ns();
}

static void record(struct thread *t, struct weir_stage *st, const struct weir_event *ev,
    int64_t now_ns, bool leaves)
{
	struct local *l = local_find(t, st->id);
	bool expired = ev->queued_ns < 0;
	int64_t from_ns = expired ? -ev->queued_ns : ev->queued_ns;
	int64_t took_ns = now_ns - from_ns > LEAST_NS ? now_ns - from_ns : LEAST_NS;

	/* If memory is short, or the other side has refused the event, the event is neither in the
	 * sum of the times nor in the number of events. */
	if (WEIR_UNLIKELY(!l || ev->queued_ns == REFUSED_NS))
		return;
	hist_book_add(&l->times[ev->class_id].service, took_ns, 1);
	if (leaves)
		book_add(&l->book.class_book[ev->class_id].handled, 1);
	if (WEIR_UNLIKELY(expired)) {
		book_add(&l->book.expired_ns, (uint64_t)took_ns);
		book_add(&l->book.expired, leaves);
	}
	if (WEIR_UNLIKELY(st->sink.policy->tick && !sink_mean_cost_ns(&st->sink)))
		sink_first_cost(&st->sink, took_ns);
	book_changed(&l->book);
}

void hold_record_part(struct thread *t, const struct weir_event *ev)
{
	struct weir_stage *st = t->graph->stages[ev->stage];

	WEIR_ASSERT(ev->queued_ns != SERVED_NS);
	if (stage_has_width(st))
		record(t, st, ev, now_of(t), false);
}

void hold_expired(const struct weir_stage *st, struct weir_event *const *ev, int n)
{
	for (int i = 0; i < n; i++) {
		ev[i]->state = WEIR_EVENT_HELD;
		if (stage_has_width(st) && ev[i]->queued_ns > 0 && ev[i]->queued_ns != REFUSED_NS)
			ev[i]->queued_ns = -ev[i]->queued_ns;
	}
}

void weir_hold_refused(struct weir_stage *st, struct weir_event *ev)
{
	struct thread *t = thread_self();

	WEIR_ASSERT(ev->state == WEIR_EVENT_HELD && ev->stage == st->id);
	if (ev->queued_ns == REFUSED_NS || ev->queued_ns == SERVED_NS)
		return;
	ev->queued_ns = REFUSED_NS;
	struct book *book = book_take(t, st->id);
	book_add(&book->refusals, 1);
	book_give(t, st->id, book);
}

/* A handler or I/O thread takes the queued events of an inline stage itself when it sends its
 * outboxes. To wake the stage's own thread would cost a wake-up for each event, and the handler
 * would run there instead of in the senders' threads. Other threads may finish events without
 * sending their outboxes, so they wake the stage's own thread. */
static bool takes_itself(struct thread *t, const struct weir_stage *st)
{
	bool sends = t->link || (t->pool && t->pool != st->pool);

	if (!st->sink.direct || !sends || queue_paused(&st->sink.queue))
		return false;
	struct local *l = local_find(t, st->id);
	if (l)
		outbox_mark(t, &l->take);
	return l;
}

void hold_wake(struct thread *t, struct weir_stage *st)
{
	struct sink *s = &st->sink;
	/* seq_cst, after the count has been lowered; pairs with handler_park (sched/rest.c), and with
	 * admit_run in stage/sink.c */
	uint32_t length = atomic_load(&s->queue.length);

	if (length > 0 && s->pool &&
	    atomic_load_explicit(&t->running, memory_order_relaxed) != st && !takes_itself(t, st))
		s->wake(s, 0, length, ~0ULL);
}

/* The other side has done its work for `ev`, which leaves the held events of its stage. */
static void serve(struct thread *t, struct weir_stage *st, struct weir_event *ev, int64_t now_ns)
{
	if (ev->queued_ns == SERVED_NS)
		return;
	hold_count(t, st->id, ev->class_id, -1);
	record(t, st, ev, now_ns, true);
}

void hold_end(struct thread *t, struct weir_event *const *ev, int n)
{
	struct weir_stage *st = t->graph->stages[ev[0]->stage];

	if (WEIR_LIKELY(!stage_has_width(st))) {
		hold_count(t, st->id, ev[0]->class_id, -n);
		return;
	}
	int64_t now_ns = now_of(t);
	for (int i = 0; i < n; i++)
		serve(t, st, ev[i], now_ns);
	hold_wake(t, st);
}

void weir_hold_served(struct weir_stage *st, struct weir_event *ev)
{
	struct thread *t = thread_self();

	WEIR_ASSERT(ev->state == WEIR_EVENT_HELD && ev->stage == st->id);
	if (!stage_has_width(st) || ev->queued_ns == REFUSED_NS)
		return;
	serve(t, st, ev, now_of(t));
	ev->queued_ns = SERVED_NS;
	hold_wake(t, st);
}

void hold_reserve(struct thread *t, struct queue *q, struct weir_event *const *ev, int n)
{
	for (int i = 0; i < n; i++)
		t->reserved[ev[i]->class_id]++;
	t->unsettled = q;
}

void hold_settle_counts(struct thread *t)
{
	queue_settle(t->unsettled, t->holds, t->reserved);
	memset(t->holds, 0, sizeof(t->holds));
	memset(t->reserved, 0, sizeof(t->reserved));
	t->unsettled = NULL;
}

void hold_requeued(struct local *l)
{
	struct queue *q = &l->stage->sink.queue;

	for (int c = 0; c < q->n_classes; c++)
		if (l->again_held[c])
			queue_hold(q, c, -l->again_held[c]);
	memset(l->again_held, 0, sizeof(l->again_held));
	l->again_holds = false;
	if (stage_has_width(l->stage))
		hold_wake(l->thread, l->stage);
}
