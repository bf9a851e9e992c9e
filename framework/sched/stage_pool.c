/* SPDX-License-Identifier: MIT */
/* Gives a sink access to the threads that serve its stage: counts them, counts the idle ones, and
 * wakes them. */
#include <math.h>

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
		idle = sink->queue.map ? pool_rank_idle(pool, rank) : pool_seat_idle(pool, rank);
	else if (sink->queue.leasing)
		idle = idle_beside_leases(sink, idle);
	view->idle = idle;
}

/* ---- groups ---- */

/* Number of steps from an upper bound of a wait to its estimate. Each step lowers the bound. During
 * a shorter wait, more of the other stages have less work than the visits allow, and for them only
 * that work is counted. 3 steps suffice for groups whose stages are of three kinds. */
#define TURN_STEPS 3

/* Longest predicted wait, 11 days. Its product with any number of threads fits into an int64_t. */
#define TURN_MOST_NS 1e15

/* Smallest number of threads assumed to be left by stages with short queues. */
#define TURN_LEAST 0.05

static double known(const _Atomic double *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

/*
 * One step of pool_turn_ns from the bound `wait_ns` to a lower one. During `rounds` visits the
 * threads run at most `rounds` batches of each other stage. If the partitions of the other stage
 * are leased, at most one batch per partition runs at a time. A stage with less work than these
 * bounds counts with the work that waits now and the work that it is offered during the wait.
 */
static double next_turn_ns(const struct sink *sink, double work_ns, double rounds, double wait_ns)
{
	const struct pool *pool = sink->pool;
	double threads = pool_seats(pool);

	for (int i = 0; i < pool->n_sinks; i++) {
		const struct sink *other = pool->sinks[i];
		if (other == sink)
			continue;
		double waits_ns = queue_ready(&other->queue) * known(&other->rotation.event_ns);
		double used = known(&other->rotation.used);
		double most_ns = rounds * known(&other->rotation.batch_ns);
		double at_once = other->queue.leasing ? other->queue.n_parts : INFINITY;
		if (waits_ns + used * wait_ns < fmin(most_ns, at_once * wait_ns)) {
			work_ns += waits_ns;
			threads -= used;
		} else if (at_once * wait_ns < most_ns) {
			threads -= at_once;
		} else {
			work_ns += most_ns;
		}
	}
	return work_ns / fmax(threads, TURN_LEAST);
}

double pool_turn_ns(const struct sink *sink, double work_ns, double rounds)
{
	/* longer than any wait, so that only `rounds` limits the other stages */
	double wait_ns = 1e18;

	for (int i = 0; i < TURN_STEPS; i++)
		wait_ns = next_turn_ns(sink, work_ns, rounds, wait_ns);
	return wait_ns;
}

/* Return the work that waits in the group: `work_ns` of the stage itself, and that of the others. In
 * a core group the schedule decides which stage is visited next, so all of it may come first. */
static double cores_work_ns(const struct sink *sink, double work_ns)
{
	const struct pool *pool = sink->pool;

	for (int i = 0; i < pool->n_sinks; i++)
		if (pool->sinks[i] != sink)
			work_ns += sink_waiting(pool->sinks[i]) *
				   known(&pool->sinks[i]->rotation.event_ns);
	return work_ns;
}

int64_t stage_beside(const struct sink *sink, const struct admission_view *view)
{
	const struct pool *pool = sink->pool;
	double work_ns = (double)view->work_ns, batch_ns = known(&sink->rotation.batch_ns), wait_ns;

	if (pool->n_sinks == 1 || view->idle > 0 || batch_ns <= 0 ||
	    atomic_load_explicit(&sink->queue.width, memory_order_relaxed) > 0)
		return view->work_ns;
	if (pool->cores)
		wait_ns = cores_work_ns(sink, work_ns) / pool_seats(pool);
	else if (view->work_ns > 0)
		wait_ns = pool_turn_ns(sink, work_ns, work_ns / batch_ns + TURN_FIRST);
	else
		wait_ns = known(&sink->rotation.first_ns);
	if (sink->queue.leasing) /* its batches may be limited by leases rather than by threads */
		wait_ns = fmax(wait_ns, work_ns / view->threads);
	return (int64_t)(fmin(wait_ns, TURN_MOST_NS) * view->threads);
}

/* ---- wake-ups ---- */

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
	struct thread *t = thread_self();
	int woken;

	t->sent_home |= t->pool == pool;
	if (pool->cores)
		cores_arrived(pool->cores, sink);
	/* do not wake threads for a paused queue; resuming it wakes them */
	if (queue_paused(&sink->queue) || !cohort_wakes(sink, before, length))
		return;
	if (sink->queue.n_parts > 1)
		woken =
		    sink->queue.map ? pool_wake_ranks(pool, parts) : pool_wake_parts(pool, parts);
	else
		woken = pool_wake(pool);
	if (woken)
		count_wakeups(sink->stage, woken);
}
