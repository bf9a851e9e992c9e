/* SPDX-License-Identifier: MIT */
/*
 * Runs a handler thread of a pool: it takes a batch, runs the handler, and sends the emitted events.
 * Without work, it first spins and then parks.
 *
 *   LIVE: BUSY (in a handler) -> SPINNING (polling) -> IDLE (parked) -> ... -> GONE
 *
 * A thread whose batch leaves events in the queue wakes another thread.
 */
#include "base/clock.h"
#include "sched/handler.h"
#include "stage/stage.h"

/* Batches with fewer events are small: their event pointers fill less than a cache line. */
#define SMALL_BATCH 8

/* Maximum number of pauses of 200 ns after a small batch. 8 is a guess: 1.6 us in total, far less
 * than a wake-up takes. */
#define NAPS_MAX 8

bool handler_due(struct handler *h)
{
	for (int i = 0; i < h->pool->n_sinks; i++)
		if (batch_due(h, i))
			return true;
	return false;
}

/* Take the next batch from any stage of the pool. Returns its size, or 0 if there is none. */
static int take(struct handler *h, int64_t now_ns)
{
	struct pool *pool = h->pool;

	h->expired = false;
	if (batch_take_expired(h, now_ns) > 0)
		return h->n_batch;
	for (int i = 0; i < pool->n_sinks; i++) {
		h->view[i] = (struct sched_view){
		    .length = queue_ready(&pool->sinks[i]->queue), .depth = pool->depths[i]};
		if (h->view[i].length == 0) /* another thread took the events */
			h->ready_ns[i] = INT64_MAX;
	}
	for (;;) {
		int at = pool->policy->pick(h->policy_state, h->view, pool->n_sinks, now_ns);
		if (at < 0)
			return 0;
		if (batch_take(h, at, 0, WEIR_BATCH_MAX, NULL, now_ns) > 0)
			return h->n_batch;
		h->view[at].length = 0;
	}
}

/*
 * Pause after a small batch before taking the next one. Without the pause, two threads that
 * alternately take single events from a queue would spend their time on cache-line transfers of its
 * lock (bench/micro_hop, runs of 1). The pause doubles after each small batch and halves after a
 * large one. It is reset if the queue was empty (handler_main), so under light load an event waits
 * for at most one task_relax.
 *
 * There is no pause if the batch sent events to a stage of the thread's own pool, since this thread
 * can run them at once (bench/micro_group). Other events that wait in the group do not prevent the
 * pause, since they have come from other threads.
 */
static void leave_alone(struct handler *h, int n)
{
	struct thread *t = thread_self();
	bool sent_home = t->sent_home;

	t->sent_home = false;
	if (h->pool->spin_max_ns == 0 || sent_home)
		return;
	if (n < SMALL_BATCH)
		h->naps = h->naps == 0 ? 1 : h->naps * 2 < NAPS_MAX ? h->naps * 2 : NAPS_MAX;
	else if (n >= 2 * SMALL_BATCH)
		h->naps /= 2;
	for (int i = 0; i < h->naps; i++)
		task_relax();
}

/* Whether events are waiting that any thread of the pool could take. This thread may have been
 * woken for these events, or linger for them. Then another thread must be woken, so that they do
 * not wait until this thread has run its batch. */
static bool more_waits(const struct handler *h)
{
	for (int i = 0; i < h->pool->n_sinks; i++) {
		struct queue *q = &h->pool->sinks[i]->queue;
		if (q->n_parts == 1 && queue_due(q, 0, 1, 1))
			return true;
	}
	return false;
}

static void run(struct handler *h)
{
	int n = h->n_batch;

	handler_state(h, WEIR_THREAD_BUSY);
	/* In a burst, each thread thus wakes the next one. A thread that parks after this check
	 * finds the events itself. */
	if (atomic_load(&h->pool->n_idle) > 0 && more_waits(h))
		pool_wake(h->pool);
	h->passing = true;
	batch_run(h);
	while (h->n_next > 0) {
		h->sink = h->next;
		h->n_batch = h->n_next;
		h->n_next = 0;
		batch_run(h);
	}
	h->passing = false;
	handler_state(h, WEIR_THREAD_SPINNING);
	leave_alone(h, n);
}

void *handler_main(void *arg)
{
	struct handler *h = arg;

	if (!handler_begin(h))
		return NULL;
	if (h->pool->pinned)
		handler_pin(h->rank % task_cores());
	pthread_cleanup_push(handler_leave, h);
	while (!handler_surplus(h)) {
		int64_t now_ns = clock_now_ns();
		thread_touch(now_ns);
		if (take(h, now_ns) > 0) {
			run(h);
			continue;
		}
		h->naps = 0;
		if (!handler_spin(h))
			handler_park(h);
	}
	pthread_cleanup_pop(1);
	return NULL;
}
