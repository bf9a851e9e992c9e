/* SPDX-License-Identifier: MIT */
/*
 * Lets a handler thread run requeued events as its next batch, without the queue.
 *
 * A parent whose children have run in the thread itself (inline stages) comes back to it with the last of
 * them. If nothing else waits, the thread would push it to the queue, find it there and take it again,
 * which costs more than the batch. So it keeps it, as if it had taken it already: the next batch begins
 * when the last one ended, and no clock is read in between.
 *
 * The queue is the way if it may matter: it has events, or those of another stage of the pool wait; a stage
 * of the pool holds events with tickets, which expire between batches; another thread could take some of
 * the events; the stage lingers, is paused or drained; it orders its events; or the thread is one too many.
 */
#include "base/probe.h"
#include "event/place.h"
#include "sched/handler.h"
#include "stage/cohort.h"

/* Whether no event waits for a thread of the pool, nor may have to: a stage with tickets has `expire`. So
 * has each stage with a width. */
static bool is_idle(const struct pool *pool)
{
	for (int i = 0; i < pool->n_sinks; i++)
		if (pool->sinks[i]->expire || queue_length(&pool->sinks[i]->queue) > 0)
			return false;
	return true;
}

/* Whether the queue neither orders its events nor leases them. One of a pool has several parts only to
 * lease them. */
static bool is_plain(const struct queue *q)
{
	return !q->leasing && !q->shortest &&
	       !atomic_load_explicit(&q->by_door, memory_order_relaxed);
}

/* Whether the thread may run the `n` events at once. */
static bool takes(const struct handler *h, const struct sink *s, int n)
{
	if (!is_plain(&s->queue) || atomic_load_explicit(&s->linger_ns, memory_order_relaxed) > 0)
		return false;
	if (n > 1 && (s->cohort_by_key || n > cohort_largest(s) || pool_seats(h->pool) > 1))
		return false;
	return is_idle(h->pool) && !handler_surplus(h);
}

/* Move the events to the batch. Returns false if they have several classes, which the queue orders. */
static bool load(struct handler *h, struct outbox *o, int64_t now_ns)
{
	uint32_t place = event_place(o->head);
	int n = 0;

	for (const struct weir_event *ev = o->head; ev; ev = ev->next)
		if (event_place(ev) != place)
			return false;
	for (struct weir_event *ev = o->head; ev; ev = ev->next) {
		ev->queued_ns = now_ns;
		event_set_state(ev, WEIR_EVENT_AGAIN);
		h->batch[n++] = ev;
	}
	h->n_next = n;
	o->head = NULL;
	o->tail = &o->head;
	o->n = 0;
	return true;
}

/* Events that counted as held count as in the handler, as after queue_pop. Others that counted, of any
 * class, have been cancelled since. */
static void move_slots(struct thread *t, struct local *l, struct queue *q, int class_id, int n)
{
	int held[WEIR_CLASSES_MAX] = {0}, taken[WEIR_CLASSES_MAX] = {0};

	for (int c = 0; c < q->n_classes; c++) {
		held[c] = -l->again_held[c];
		l->again_held[c] = 0;
	}
	taken[class_id] = -n;
	queue_settle(q, held, taken);
	l->again_holds = false;
	t->reserved[class_id] = n;
	t->unsettled = q;
}

/* The handler that the calling thread `t` is in `pool`, while it passes on what a batch has emitted; or
 * NULL. */
static struct handler *passing(struct thread *t, struct pool *pool)
{
	int rank = atomic_load_explicit(&t->number, memory_order_relaxed);

	if (t->pool != pool || rank < 0)
		return NULL;
	struct handler *h = atomic_load_explicit(&pool->handler[rank], memory_order_relaxed);
	return h->passing ? h : NULL;
}

bool handler_requeue(struct thread *t, struct outbox *o)
{
	struct sink *s = o->sink;
	struct handler *h = passing(t, s->pool);
	int n = o->n;

	/* only what is sent last, when the events of the batch before have gone through */
	if (!h || o->next || !takes(h, s, n) || !load(h, o, t->now_ns))
		return false;
	h->next = s;
	book_add(&o->from->book.put_back, (uint64_t)n);
	book_add(&o->from->book.running, -(uint64_t)n);
	book_changed(&o->from->book);
	if (queue_keeps(&s->queue))
		move_slots(t, o->from, &s->queue, h->batch[0]->class_id, n);
	probe_enqueue(s->name, n, (uint32_t)n);
	return true;
}
