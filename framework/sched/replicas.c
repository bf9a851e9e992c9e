/* SPDX-License-Identifier: MIT */
/*
 * What replicated stages need of their core group: a replica is used by the thread of its core only,
 * also when the stage is stopped, and an event that is requeued stays with its replica.
 */
#include "base/clock.h"
#include "base/futex.h"
#include "event/place.h"
#include "sched/cores.h"
#include "sched/handler.h"
#include "stage/replica.h"

/* How long to wait for the cores at least, even if the time of the drain is over. 20 ms is a guess:
 * a batch takes far less, and a core in a longer one is stopped when its thread has exited. */
#define STOP_LEAST_NS (20 * NS_PER_MS)

/* Interval at which the wait for cores looks whether their threads have exited. A guess. */
#define STOP_LOOK_NS (5 * NS_PER_MS)

/* Whether core `k` has a thread, or is getting one. */
static bool has_thread(const struct core_group *group, int k)
{
	const struct handler *h = atomic_load(&group->pool->handler[k]);
	int slot = h ? atomic_load(&h->slot) : HANDLER_EMPTY;

	return slot == HANDLER_STARTING || slot == HANDLER_LIVE;
}

static bool is_gone(const struct core_group *group, int k)
{
	const struct handler *h = atomic_load(&group->pool->handler[k]);

	return !h || atomic_load(&h->slot) == HANDLER_EMPTY;
}

/* Stop the replicas of cores without a thread, in the calling thread. The pool is closed, so no
 * thread can be created any more. */
static void stop_gone(struct core_group *group, struct weir_stage *st, int64_t until_ns)
{
	for (int k = 0; k < group->max; k++) {
		if (!is_gone(group, k))
			continue;
		int before = replica_enter(k);
		st->ops->stop(st, until_ns);
		thread_flush(); /* may call ops->refused */
		replica_enter(before);
	}
}

static bool await_one(struct core_group *group, int k, uint64_t bit, int64_t until_ns)
{
	for (;;) {
		unsigned stops = atomic_load(&group->stops);
		if (!(atomic_load(&group->core[k].stopping) & bit) || !has_thread(group, k))
			return true;
		if (clock_now_ns() >= until_ns || weir_hurried(group->pool->sinks[0]->stage))
			return false;
		futex_wait(&group->stops, stops, STOP_LOOK_NS);
	}
}

void cores_stop(struct core_group *group, struct weir_stage *st, int64_t until_ns)
{
	uint64_t bit = 1ULL << st->sink.place;
	int64_t least_ns = clock_now_ns() + STOP_LEAST_NS;
	int64_t wait_ns = until_ns > least_ns ? until_ns : least_ns;

	if (atomic_load(&group->pool->stopping)) {
		stop_gone(group, st, until_ns);
		return;
	}
	atomic_store(&group->stop_until_ns, until_ns);
	for (int k = 0; k < group->max; k++) {
		if (!has_thread(group, k))
			continue;
		atomic_fetch_or(&group->core[k].stopping, bit);
		atomic_fetch_or(&group->core[k].asked, ASKED_STOP); /* seq_cst: see core_due */
	}
	pool_wake_all(group->pool);
	for (int k = 0; k < group->max && await_one(group, k, bit, wait_ns); k++)
		continue;
}

void core_stop(struct core *core)
{
	struct core_group *group = core->group;

	if (!(atomic_fetch_and(&core->asked, ~ASKED_STOP) & ASKED_STOP))
		return;
	for (uint64_t left = atomic_load(&core->stopping); left; left &= left - 1) {
		struct weir_stage *st = group->pool->sinks[__builtin_ctzll(left)]->stage;
		st->ops->stop(st, atomic_load(&group->stop_until_ns));
		thread_flush();
		atomic_fetch_and(&core->stopping, ~(left & -left));
		atomic_fetch_add(&group->stops, 1);
		futex_wake(&group->stops);
	}
}

bool core_copy_idles(const struct core *core)
{
	const struct pool *pool = core->group->pool;
	int own = core->number;

	for (int k = core_copy(core); k < core->group->max; k += pool->copies) {
		const struct handler *h = atomic_load(&pool->handler[k]);
		if (k != own && h && atomic_load(&h->slot) == HANDLER_LIVE &&
		    atomic_load_explicit(&h->state, memory_order_relaxed) == WEIR_THREAD_IDLE)
			return true;
	}
	return false;
}

bool core_requeue(struct thread *t, struct outbox *o)
{
	struct sink *s = o->sink;
	struct core *core = t->core;
	uint32_t n = 0;

	if (!core || s->pool != t->pool || queue_keeps(&s->queue) ||
	    atomic_load_explicit(&s->queue.by_door, memory_order_relaxed))
		return false;
	while (o->head) {
		struct weir_event *ev = o->head;
		o->head = ev->next;
		ev->queued_ns = t->now_ns;
		event_set_state(ev, WEIR_EVENT_AGAIN);
		cell_put(&core->cell[s->place], ev->class_id, ev, ev, 1, core->group->newest);
		n++;
	}
	o->tail = &o->head;
	o->n = 0;
	book_add(&o->from->book.put_back, n);
	book_add(&o->from->book.running, -(uint64_t)n);
	book_changed(&o->from->book);
	core->filled |= 1ULL << s->place;
	core->n += n;
	next_arrived(&core->next, s->place, n);
	return true;
}
