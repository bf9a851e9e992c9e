/* SPDX-License-Identifier: MIT */
/*
 * The life of a handler thread: take a batch, run it, send on what it emitted; else spin, then
 * park.
 *
 *   LIVE: BUSY (in a handler) -> SPINNING (looking) -> IDLE (parked) -> ... -> GONE
 *
 * No wake-up is lost, because both sides write before they read, all seq_cst:
 *   sender:  queue length up, then read n_spinning and n_idle
 *   thread:  n_idle up (park) or n_spinning down (end of spin), then read the queue lengths
 * A thread that leaves, and one that took a batch and left more behind, pass the wake-up on.
 *
 * A handler that calls pthread_exit does not take its batch with it: the cleanup finishes what is
 * left of it as WEIR_EDIED, and the control thread makes a new thread.
 */
#include "sched/pool.h"

#include <sched.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/futex.h"
#include "flow/cohort.h"
#include "flow/thread.h"

/* A spin that found nothing halves the next one down to this; one that found work doubles it.
 * Guess: a tenth of the longest. */
#define SPIN_MIN_NS (2 * NS_PER_US)

/* Batches below this are small: less than a cache line of event pointers. */
#define SMALL_BATCH 8

/* Longest nap in looks of 200 ns: 1.6 us, an eighth of what a wake-up costs. Guess. */
#define NAPS_MAX 8

static void set_state(struct handler *h, enum weir_thread_state state)
{
	atomic_store_explicit(&h->state, (uint8_t)state, memory_order_relaxed);
}

static bool surplus(const struct handler *h)
{
	return h->rank >= atomic_load_explicit(&h->pool->target, memory_order_relaxed);
}

static int ranks(const struct pool *pool)
{
	int n = atomic_load_explicit(&pool->target, memory_order_relaxed);

	return n > 0 ? n : 1;
}

/* Might sink `i` have a batch for this thread? */
static bool sink_due(struct handler *h, int i)
{
	struct sink *s = h->pool->sinks[i];

	uint32_t least = 1;

	if (h->ready_ns[i] != INT64_MAX) /* lingering: only a full batch comes before its time */
		least = (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
	return queue_due(&s->queue, h->rank, ranks(h->pool), least); /* seq_cst: see file top */
}

static bool work_due(struct handler *h)
{
	for (int i = 0; i < h->pool->n_sinks; i++)
		if (sink_due(h, i))
			return true;
	return false;
}

/* Take the next batch of any stage of the pool. Returns its size, 0 for none. */
static int take(struct handler *h, int64_t now_ns)
{
	struct pool *pool = h->pool;

	for (int i = 0; i < pool->n_sinks; i++) {
		h->view[i] = (struct sched_view){
		    .length = queue_ready(&pool->sinks[i]->queue), .depth = pool->depths[i]};
		if (h->view[i].length == 0) /* somebody took what this thread lingered for */
			h->ready_ns[i] = INT64_MAX;
	}
	for (;;) {
		int at = pool->policy->pick(h->policy_state, h->view, pool->n_sinks, now_ns);
		if (at < 0)
			return 0;
		struct sink *s = pool->sinks[at];
		int n = cohort_take(
		    s, h->rank, ranks(pool), now_ns, h->batch, &h->part, &h->ready_ns[at]);
		if (n > 0) {
			h->sink = s;
			h->n_batch = n;
			return n;
		}
		h->view[at].length = 0;
	}
}

/* The batch is done: give back the lease, and let somebody else look at what is left. */
static void release(struct handler *h)
{
	struct sink *s = h->sink;
	bool more = queue_release(&s->queue, h->part);

	h->sink = NULL;
	h->n_batch = 0;
	if (more && s->queue.n_parts > 1 && h->part % ranks(h->pool) != h->rank)
		pool_wake_parts(h->pool, 1ULL << h->part);
}

/* After a small batch leave the senders alone for a moment: threads that take the lock in turn for
 * one event each pay cache-line round trips for it (bench/micro_hop, runs of 1). The moment doubles
 * while batches stay small though they come at once, stays while they are neither small nor large,
 * halves after a large one, and is forgotten when the queue was empty (handler_main): a trickle
 * waits no longer than one look of a spinning thread. */
static void leave_alone(struct handler *h, int n)
{
	if (h->pool->spin_max_ns == 0)
		return;
	if (n < SMALL_BATCH)
		h->naps = h->naps == 0 ? 1 : h->naps * 2 < NAPS_MAX ? h->naps * 2 : NAPS_MAX;
	else if (n >= 2 * SMALL_BATCH)
		h->naps /= 2;
	for (int i = 0; i < h->naps; i++)
		task_relax();
}

/* Is there more that any thread of the pool could take? What this thread was woken for, or lingers
 * for, must not wait until it has run a batch of another stage. */
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
	if (more_waits(h))
		pool_wake(
		    h->pool); /* a burst wakes its threads one by one, each by the one before */
	s->run(s, h->batch, h->n_batch);
	thread_flush();
	release(h);
	set_state(h, WEIR_THREAD_SPINNING);
	leave_alone(h, n);
}

/* Look for work for a bounded time. Returns true when there is some. */
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

static int64_t earliest(const struct handler *h)
{
	int64_t at_ns = INT64_MAX;

	for (int i = 0; i < h->pool->n_sinks; i++)
		if (h->ready_ns[i] < at_ns)
			at_ns = h->ready_ns[i];
	return at_ns;
}

/* Take back the own announcement. Returns false when a waker had it: its wake-up is on the way. */
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

/* Sleep until woken or until a lingering batch falls due. */
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

/* The thread ends, in order or by pthread_exit in a handler. */
static void leave(void *arg)
{
	struct handler *h = arg;
	struct pool *pool = h->pool;

	if (h->sink) { /* died within a batch */
		atomic_fetch_add(&pool->deaths, 1);
		thread_abandon();
		thread_flush();
		release(h);
	}
	thread_leave();
	schedstat_end(&h->sched);
	atomic_store(&h->slot, HANDLER_GONE);
	pool_wake(pool); /* a wake-up that came for this thread must not be lost */
}

void *handler_main(void *arg)
{
	struct handler *h = arg;
	char name[24];

	snprintf(name, sizeof(name), "%.10s/%d", h->pool->name, h->rank);
	schedstat_begin(&h->sched);
	if (thread_enter_pool(h->pool->graph, name, h->pool) != 0) {
		atomic_fetch_add(&h->pool->failures, 1);
		schedstat_end(&h->sched);
		atomic_store(&h->slot, HANDLER_GONE);
		return NULL;
	}
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
