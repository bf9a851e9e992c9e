/* SPDX-License-Identifier: MIT */
/*
 * What the threads of pools (handler.c) and of core groups (core.c) have in common: their life, their
 * batches, and their rest. All calls are made by the thread of `h` itself.
 */
#ifndef WEIR_SCHED_HANDLER_H
#define WEIR_SCHED_HANDLER_H

#include "sched/pool.h"
#include "stage/stage.h"

/** Begin the life of the thread: register it with the graph. Returns false if that fails; the thread
 *  must return then. */
bool handler_begin(struct handler *h);
/** Clean up when the thread exits, normally or because a handler called pthread_exit. A cleanup
 *  handler; `arg` is the struct handler. */
void handler_leave(void *arg);

/** Number of the core that the thread is or, if it is a spare (spare.h), that it stands in for; its rank
 *  in other pools. */
int handler_number(const struct handler *h);
/** Write the name of the thread. */
void handler_name(const struct handler *h, char *name, size_t size);

/** Bind the thread to the `left`-th, from 0, of the cores that the process may use. */
void handler_pin(int left);

static inline void handler_state(struct handler *h, enum weir_thread_state state)
{
	atomic_store_explicit(&h->state, (uint8_t)state, memory_order_relaxed);
}

/** Whether the thread is one too many, and must exit. */
static inline bool handler_surplus(const struct handler *h)
{
	return h->rank >= atomic_load_explicit(&h->pool->target, memory_order_relaxed) &&
	       !atomic_load_explicit(&h->spare, memory_order_relaxed);
}

/** Return the thread's number among the serving threads, which determines the partitions that it
 *  serves. */
static inline int handler_seat(const struct handler *h)
{
	return atomic_load_explicit(&h->seat, memory_order_relaxed);
}

/** The copy of the group to which the thread belongs, if the pool has copies. */
static inline int handler_copy(const struct handler *h)
{
	return h->rank % h->pool->copies;
}

/** The partitions of `q` that the thread serves: those whose number modulo *n is the result. */
static inline int handler_rank(const struct handler *h, const struct queue *q, int *n)
{
	if (WEIR_UNLIKELY(h->pool->copies > 1)) {
		*n = h->pool->copies;
		return handler_copy(h);
	}
	*n = q->map ? q->n_parts : pool_seats(h->pool);
	return q->map ? h->rank : handler_seat(h);
}

/** Forget when batches are due, if a linger time has changed. */
static inline void handler_relinger(struct handler *h)
{
	unsigned lingers = atomic_load(&h->pool->lingers);

	if (WEIR_LIKELY(lingers == h->lingers))
		return;
	h->lingers = lingers;
	for (int i = 0; i < h->pool->n_sinks; i++)
		h->ready_ns[i] = INT64_MAX;
}

/* ---- batches (batch.c) ---- */

/** Whether the queue of sink `i` may have a batch for this thread. */
bool batch_due(struct handler *h, int i);
/** Take events that a stage of the pool has held until their deadline. Returns their number. */
int batch_take_expired(struct handler *h, int64_t now_ns);
/** Take a batch of at most `most` events from the queue of sink `i`, and append it to the `n` events
 *  that h->batch has already. `cell` is as in struct queue_take. Returns the number of events
 *  taken. */
int batch_take(struct handler *h, int i, int n, int most, const struct cell *cell, int64_t now_ns);
/* Slow path of batch_release. */
void batch_release_any(struct handler *h);

/** Release the slots and the lease of a finished batch. If its partition has more events and is now
 *  served by another thread, wake that thread. */
static inline void batch_release(struct handler *h)
{
	const struct queue *q = &h->sink->queue;

	if (WEIR_UNLIKELY(h->expired || q->leasing ||
			  atomic_load_explicit(&q->width, memory_order_relaxed) > 0)) {
		batch_release_any(h);
		return;
	}
	h->sink = NULL;
	h->n_batch = 0;
}

/** The sinks' `requeue`, for pools that are no core groups (again.c). */
bool handler_requeue(struct thread *t, struct outbox *o);

/** Call the stage with the batch, and send what it has emitted. */
static inline void batch_run(struct handler *h)
{
	struct sink *s = h->sink;

	if (WEIR_UNLIKELY(h->expired))
		stage_expired(s, h->batch, h->n_batch);
	else
		s->run(s, h->batch, h->n_batch);
	thread_flush();
	thread_settle(s);
	batch_release(h);
}

/* ---- rest (rest.c) ---- */

/** Poll for work for at most spin_ns, then adapt spin_ns. Returns whether there is work. */
bool handler_spin(struct handler *h);
/** Sleep until the thread is woken, a lingering batch is due, or a held event expires. */
void handler_park(struct handler *h);

#endif
