/* SPDX-License-Identifier: MIT */
/*
 * Counts held events in the queue of their stage; see local.h.
 *
 * For a stage with a width, the service of an event lasts from the start of the batch that held it
 * to the end of the hold. Meanwhile its `queued_ns` is the start, since its wait has been recorded.
 * The thread that ends the hold records the time in its own book of the stage.
 */
#include <string.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "event/local.h"
#include "stage/stage.h"

/* Value of `queued_ns` of a held event that the other side has refused. */
#define REFUSED_NS INT64_MAX

void hold_count(struct thread *t, int id, int class_id, int n)
{
	struct weir_stage *st = t->graph->stages[id];

	if (atomic_load_explicit(&t->running, memory_order_relaxed) != st) {
		queue_hold(&st->sink.queue, class_id, n);
		return;
	}
	t->holds[class_id] += n;
	t->holding = true;
}

/* Return the current time. An I/O thread has read the clock in this iteration; the batch of another
 * thread may have begun long ago. */
static int64_t now_of(const struct thread *t)
{
	return t->link ? t->now_ns : clock_now_ns();
}

static void record(struct thread *t, struct weir_stage *st, const struct weir_event *ev,
    int64_t now_ns, bool leaves)
{
	struct local *l = local_find(t, st->id);
	int64_t took_ns = now_ns > ev->queued_ns ? now_ns - ev->queued_ns : 0;

	/* without memory, the event is in neither sum nor count */
	if (WEIR_UNLIKELY(!l || ev->queued_ns == REFUSED_NS))
		return;
	hist_book_add(&l->times[ev->class_id].service, took_ns, 1);
	if (leaves)
		book_add(&l->book.class_book[ev->class_id].handled, 1);
	if (WEIR_UNLIKELY(st->sink.policy->tick && !sink_mean_cost_ns(&st->sink)))
		sink_first_cost(&st->sink, took_ns);
	book_changed(&l->book);
}

void hold_record_part(struct thread *t, const struct weir_event *ev)
{
	struct weir_stage *st = t->graph->stages[ev->stage];

	if (stage_has_width(st))
		record(t, st, ev, now_of(t), false);
}

void weir_hold_refused(struct weir_stage *st, struct weir_event *ev)
{
	struct thread *t = thread_self();

	WEIR_ASSERT(ev->state == WEIR_EVENT_HELD && ev->stage == st->id);
	if (ev->queued_ns == REFUSED_NS)
		return;
	ev->queued_ns = REFUSED_NS;
	struct book *book = book_take(t, st->id);
	book_add(&book->refusals, 1);
	book_give(t, st->id, book);
}

/* Let a thread take the events that the width has room for now. In the handler of `st` itself that
 * is not necessary: the thread looks for events when the handler has returned. */
static void wake_for_width(const struct thread *t, struct weir_stage *st)
{
	struct sink *s = &st->sink;
	/* seq_cst, after the count has been lowered; pairs with park in sched/handler.c */
	uint32_t length = atomic_load(&s->queue.length);

	if (length > 0 && s->pool && atomic_load_explicit(&t->running, memory_order_relaxed) != st)
		s->wake(s, 0, length, ~0ULL);
}

void hold_end(struct thread *t, struct weir_event *const *ev, int n)
{
	struct weir_stage *st = t->graph->stages[ev[0]->stage];

	hold_count(t, st->id, ev[0]->class_id, -n);
	if (WEIR_LIKELY(!stage_has_width(st)))
		return;
	int64_t now_ns = now_of(t);
	for (int i = 0; i < n; i++)
		record(t, st, ev[i], now_ns, true);
	wake_for_width(t, st);
}

static void count_held(struct thread *t, struct queue *q)
{
	for (int c = 0; c < q->n_classes; c++)
		if (t->holds[c])
			queue_hold(q, c, t->holds[c]);
	memset(t->holds, 0, sizeof(t->holds));
	t->holding = false;
}

void hold_settle_counts(struct thread *t, struct queue *q)
{
	if (t->holding)
		count_held(t, q);
	/* after count_held, so that each event is always in at least one of the counts */
	if (t->reserves) {
		queue_return(q, t->reserved);
		memset(t->reserved, 0, sizeof(t->reserved));
		t->reserves = false;
	}
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
		wake_for_width(l->thread, l->stage);
}
