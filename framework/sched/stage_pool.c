/* SPDX-License-Identifier: MIT */
/* Gives a sink access to the threads that serve its stage: counts them, counts the idle ones, and
 * wakes them. */
#include "stage/cohort.h"
#include "event/local.h"
#include "stage/stage.h"
#include "sched/cores.h"

int stage_ranks(const struct sink *sink)
{
	return pool_seats(sink->pool);
}

/* Return the number of threads available to the stage. A leased partition is served by one thread
 * at a time, so with leases the result is at most the number of partitions. */
static inline double threads_of(const struct sink *sink)
{
	double n = pool_seats(sink->pool), parts = sink->queue.n_parts;
	double share = atomic_load_explicit(&sink->share, memory_order_relaxed);
	double mine = share > 0 && share < n ? share : n;

	if (WEIR_LIKELY(!sink->queue.leasing) || parts >= n)
		return mine;
	/* A single partition may be served by any thread; several partitions are assigned to fixed
	 * threads. */
	return parts > 1 ? mine * parts / n : mine < 1 ? mine : 1;
}

/* Limit `idle` to the threads that could take a new event. Each of them needs an unleased
 * partition. If there is only one partition and events already wait in it, an idle thread takes
 * those first, so the result is 0. */
static int idle_beside_leases(const struct sink *sink, int idle)
{
	int unleased = queue_unleased(&sink->queue);

	if (sink->queue.n_parts == 1 && queue_length(&sink->queue) > 0)
		return 0;
	return unleased < idle ? unleased : idle;
}

/* A stage with a width serves as many events at once as the width allows. It is limited by its
 * threads instead if their handlers take long: `share` of a service is spent in a handler. If no
 * thread is idle, a new event has to wait for one, however much width is left. */
static WEIR_COLD void look_at_width(const struct sink *sink, int idle, struct admission_view *view)
{
	double width = atomic_load_explicit(&sink->queue.width, memory_order_relaxed);
	double share = atomic_load_explicit(&sink->handler_share, memory_order_relaxed);
	double most = share > 0 ? threads_of(sink) / share : width;

	view->threads = width < most || sink->direct ? width : most;
	view->idle = idle > 0 || sink->direct ? queue_width_left(&sink->queue) : 0;
}

void stage_look(const struct sink *sink, int rank, struct admission_view *view)
{
	const struct pool *pool = sink->pool;
	int idle = (int)(atomic_load_explicit(&pool->n_idle, memory_order_relaxed) +
			 atomic_load_explicit(&pool->n_spinning, memory_order_relaxed));

	if (WEIR_UNLIKELY(atomic_load_explicit(&sink->queue.width, memory_order_relaxed) > 0)) {
		look_at_width(sink, idle, view);
		return;
	}
	view->threads = threads_of(sink);
	if (rank != ANY_RANK)
		idle = pool_seat_idle(pool, rank);
	else if (sink->queue.leasing)
		idle = idle_beside_leases(sink, idle);
	view->idle = idle;
}

static void count_wakeups(const struct weir_stage *st, int n)
{
	struct thread *t = thread_self();
	struct book *book = book_take(t, st->id);

	book_add(&book->wakeups, (uint64_t)n);
	book_give(t, st->id, book);
}

void stage_wake(struct sink *sink, uint32_t before, uint32_t length, uint64_t parts)
{
	struct pool *pool = sink->pool;
	int woken;

	if (pool->cores)
		cores_arrived(pool->cores, sink);
	/* do not wake threads for a paused queue; resuming it wakes them */
	if (queue_paused(&sink->queue) || !cohort_wakes(sink, before, length))
		return;
	if (sink->queue.n_parts > 1)
		woken = pool_wake_parts(pool, parts);
	else
		woken = pool_wake(pool);
	if (woken)
		count_wakeups(sink->stage, woken);
}
