/* SPDX-License-Identifier: MIT */
/*
 * Runs a handler thread: it takes a batch, runs the handler, and sends the emitted events. Without
 * work, it first spins and then parks.
 *
 *   LIVE: BUSY (in a handler) -> SPINNING (polling) -> IDLE (parked) -> ... -> GONE
 *
 * No wake-up is lost, because both sides write before they read, all seq_cst:
 *   sender:  raise the queue length, then read n_spinning and n_idle
 *   thread:  raise n_idle (park) or lower n_spinning (end of spin), then read the queue lengths
 * A thread that exits, or whose batch leaves events in the queue, wakes another thread.
 *
 * If a handler calls pthread_exit, the cleanup handler finishes the remaining events of the batch
 * as WEIR_EDIED, and the control thread creates a new thread.
 */
#include "sched/pool.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "stage/cohort.h"
#include "stage/stage.h"
#include "stage/thread.h"

/* Shortest spin. A spin that finds nothing halves the next one, and a spin that finds work doubles
 * it. 2 us, a tenth of the longest spin, is a guess. */
#define SPIN_MIN_NS (2 * NS_PER_US)

/* Time after which a parked thread reads the time of the next expiry again, if another thread was
 * about to set it (EXPIRES_UNKNOWN). The other thread does not wake this one. 4 ms is a tick of the
 * timers: nothing expires more precisely. */
#define EXPIRES_LOOK_NS (4 * NS_PER_MS)

/* Batches with fewer events are small: their event pointers fill less than a cache line. */
#define SMALL_BATCH 8

/* Maximum number of pauses of 200 ns after a small batch. 8 is a guess: 1.6 us in total, far less
 * than a wake-up takes. */
#define NAPS_MAX 8

static void set_state(struct handler *h, enum weir_thread_state state)
{
	atomic_store_explicit(&h->state, (uint8_t)state, memory_order_relaxed);
}

static bool surplus(const struct handler *h)
{
	return h->rank >= atomic_load_explicit(&h->pool->target, memory_order_relaxed);
}

/* Return the thread's number among the serving threads, which determines the partitions that it
 * serves. */
static int seat_of(const struct handler *h)
{
	return atomic_load_explicit(&h->seat, memory_order_relaxed);
}

/* Whether sink `i` may have a batch for this thread. */
static bool sink_due(struct handler *h, int i)
{
	struct sink *s = h->pool->sinks[i];

	uint32_t least = 1;

	if (h->ready_ns[i] != INT64_MAX) /* its batch lingers: only a full one is due */
		least = (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
	return queue_due(
	    &s->queue, seat_of(h), pool_seats(h->pool), least); /* seq_cst: see file top */
}

static bool work_due(struct handler *h)
{
	for (int i = 0; i < h->pool->n_sinks; i++)
		if (sink_due(h, i))
			return true;
	return false;
}

/* Take events that a stage of the pool has held until their deadline. Returns their number. */
static int take_expired(struct handler *h, int64_t now_ns)
{
	for (int i = 0; i < h->pool->n_sinks; i++) {
		struct sink *s = h->pool->sinks[i];
		if (WEIR_LIKELY(!s->expire))
			continue;
		if (atomic_load_explicit(&s->expires_ns, memory_order_relaxed) <= now_ns)
			s->expire(s, now_ns);
		h->n_batch =
		    queue_take_back(&s->queue, seat_of(h), pool_seats(h->pool), h->batch, &h->part);
		if (h->n_batch == 0)
			continue;
		h->sink = s;
		h->expired = true;
		return h->n_batch;
	}
	return 0;
}

/* Take the next batch from any stage of the pool. Returns its size, or 0 if there is none. */
static int take(struct handler *h, int64_t now_ns)
{
	struct pool *pool = h->pool;

	h->expired = false;
	if (take_expired(h, now_ns) > 0)
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
		struct sink *s = pool->sinks[at];
		struct cohort c;
		int n = cohort_take(
		    s, seat_of(h), pool_seats(pool), now_ns, h->batch, &c, &h->ready_ns[at]);
		if (n > 0) {
			h->sink = s;
			h->part = c.part;
			h->n_batch = n;
			if (WEIR_UNLIKELY(c.counted))
				hold_reserve(thread_self(), &s->queue, h->batch, n);
			return n;
		}
		h->view[at].length = 0;
	}
}

/* Release the slots and the lease of a finished batch. If its partition has more events and is now
 * served by another thread, wake that thread. */
static void release(struct handler *h)
{
	struct sink *s = h->sink;

	if (WEIR_UNLIKELY(h->expired))
		stage_expired_over(s, h->n_batch);
	bool more = queue_release(&s->queue, h->part);
	/* the batch may have used up the width, so that threads of other partitions have parked */
	if (WEIR_UNLIKELY(atomic_load_explicit(&s->queue.width, memory_order_relaxed) > 0) &&
	    s->queue.n_parts > 1 && atomic_load(&s->queue.length) > 0)
		pool_wake_parts(h->pool, ~0ULL);

	h->sink = NULL;
	h->n_batch = 0;
	if (more && s->queue.n_parts > 1 && h->part % pool_seats(h->pool) != seat_of(h))
		pool_wake_parts(h->pool, 1ULL << h->part);
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
	struct sink *s = h->sink;
	int n = h->n_batch;

	set_state(h, WEIR_THREAD_BUSY);
	/* In a burst, each thread thus wakes the next one. A thread that parks after this check
	 * finds the events itself. */
	if (atomic_load(&h->pool->n_idle) > 0 && more_waits(h))
		pool_wake(h->pool);
	if (WEIR_UNLIKELY(h->expired))
		stage_expired(s, h->batch, n);
	else
		s->run(s, h->batch, n);
	thread_flush();
	thread_settle(s);
	release(h);
	set_state(h, WEIR_THREAD_SPINNING);
	leave_alone(h, n);
}

/* Poll for work for at most spin_ns, then adapt spin_ns. Returns whether there is work. */
static bool spin(struct handler *h)
{
	struct pool *pool = h->pool;
	int64_t end_ns = clock_now_ns() + h->spin_ns;
	bool found = false;

	if (h->spin_ns <= 0)
		return false;
	atomic_fetch_add(&pool->n_spinning, 1);
	while (!found && !surplus(h) && clock_now_ns() < end_ns) {
		task_relax();
		found = work_due(h);
	}
	atomic_fetch_sub(&pool->n_spinning, 1); /* seq_cst: see file top */
	if (found)
		h->spin_ns =
		    h->spin_ns * 2 < pool->spin_max_ns ? h->spin_ns * 2 : pool->spin_max_ns;
	else if (h->spin_ns / 2 >= SPIN_MIN_NS)
		h->spin_ns /= 2;
	return found || work_due(h);
}

/* Return the time until which the thread may sleep if nobody wakes it: when the first lingering
 * batch is due, a held event expires, or an unknown expiry must be read again. INT64_MAX if there
 * is no such time. */
static int64_t earliest(const struct handler *h)
{
	int64_t at_ns = INT64_MAX;

	for (int i = 0; i < h->pool->n_sinks; i++) {
		struct sink *s = h->pool->sinks[i];
		if (h->ready_ns[i] < at_ns)
			at_ns = h->ready_ns[i];
		/* seq_cst, after n_idle has been raised; pairs with file_soon in graph/tickets.c */
		int64_t expires_ns = s->expire ? atomic_load(&s->expires_ns) : INT64_MAX;
		if (WEIR_UNLIKELY(expires_ns == EXPIRES_UNKNOWN)) /* read it again */
			expires_ns = clock_now_ns() + EXPIRES_LOOK_NS;
		if (expires_ns < at_ns)
			at_ns = expires_ns;
	}
	return at_ns;
}

/* Remove the thread from the idle list. Returns false if a waker has already removed it; a wake-up
 * is then on its way. */
static bool unpark(struct handler *h)
{
	struct pool *pool = h->pool;
	bool was_listed = false;

	lock_take(&pool->lock);
	for (struct handler **at = &pool->idle; h->listed && *at; at = &(*at)->next_idle) {
		if (*at == h) {
			*at = h->next_idle;
			h->listed = false;
			was_listed = true;
			break;
		}
	}
	lock_release(&pool->lock);
	if (was_listed)
		atomic_fetch_sub(&pool->n_idle, 1);
	return was_listed;
}

static void sleep_until_woken(struct handler *h, int64_t until_ns)
{
	while (atomic_load(&h->wake) == 0) {
		int64_t left_ns = until_ns == INT64_MAX ? -1 : until_ns - clock_now_ns();
		if (until_ns != INT64_MAX && left_ns <= 0) {
			if (unpark(h))
				return;
			until_ns = INT64_MAX;
			continue;
		}
		futex_wait(&h->wake, 0, left_ns);
	}
	atomic_store(&h->wake, 0);
}

/* Sleep until the thread is woken, a lingering batch is due, or a held event expires. */
static void park(struct handler *h)
{
	struct pool *pool = h->pool;

	set_state(h, WEIR_THREAD_IDLE);
	lock_take(&pool->lock);
	h->next_idle = pool->idle;
	pool->idle = h;
	h->listed = true;
	atomic_fetch_add(&pool->n_idle, 1); /* seq_cst: see file top */
	lock_release(&pool->lock);
	if ((work_due(h) || surplus(h)) && unpark(h)) {
		set_state(h, WEIR_THREAD_SPINNING);
		return;
	}
	sleep_until_woken(h, earliest(h));
	set_state(h, WEIR_THREAD_SPINNING);
}

static void pin(const struct handler *h)
{
	cpu_set_t allowed, one;
	int left = h->rank % task_cores();

	if (!h->pool->pinned || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && left-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
			return;
		}
	}
}

/* Clean up when the thread exits, normally or because a handler called pthread_exit. */
static void leave(void *arg)
{
	struct handler *h = arg;
	struct pool *pool = h->pool;

	/* If a handler run below ends the thread, too, glibc first calls the cleanup handler that
	 * is pushed below, and then this one again. */
	if (!thread_current)
		return;
	pthread_cleanup_push(leave, h);     /* a handler run below may call pthread_exit, too */
	if (h->sink || thread_in_handler()) /* exited in a batch, or while passing on its events */
		thread_died(&pool->deaths);
	if (h->sink)
		release(h);
	thread_end();
	pthread_cleanup_pop(0);
	thread_leave();
	schedstat_end(&h->sched);
	atomic_store(&h->slot, HANDLER_GONE);
	pool_deal(pool);
	pool_wake(pool); /* pass on a wake-up that was sent to this thread */
}

void *handler_main(void *arg)
{
	struct handler *h = arg;
	char name[24];

	snprintf(name, sizeof(name), "%.10s/%d", h->pool->name, h->rank);
	schedstat_begin(&h->sched);
	int rc = thread_enter_pool(h->pool->graph, name, h->pool);
	if (rc != 0) {
		schedstat_end(&h->sched);
		pool_not_begun(h, (struct pool_refusal){.by = thread_refused_by(), .code = rc});
		return NULL;
	}
	pool_begun(h);
	pin(h);
	for (int i = 0; i < h->pool->n_sinks; i++)
		h->ready_ns[i] = INT64_MAX;
	pthread_cleanup_push(leave, h);
	while (!surplus(h)) {
		int64_t now_ns = clock_now_ns();
		thread_touch(now_ns);
		if (take(h, now_ns) > 0) {
			run(h);
			continue;
		}
		h->naps = 0;
		if (!spin(h))
			park(h);
	}
	pthread_cleanup_pop(1);
	return NULL;
}
