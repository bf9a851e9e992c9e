/* SPDX-License-Identifier: MIT */
/*
 * Creates, resizes and repairs pools of handler threads. See pool.h for states and rules.
 *
 * pool->lock guards the idle list, the seats, the back-off and the creation of threads. A slot is
 * set to LIVE and GONE by its own thread. Only the control thread joins threads and sets their
 * slots to EMPTY again; after it has stopped, pool_join does so. The slots of threads of event
 * loops are set by the loops (host.h).
 */
#include "sched/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "sched/cores.h"
#include "sched/handler.h"

/* Back-off after a thread could not be created. It doubles from 100 ms to 10 s; both are guesses: a
 * machine that is out of threads needs seconds to recover, not milliseconds. */
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_LAST_NS  (10 * NS_PER_S)

/* Interval at which pool_started checks again, since it may miss a wake-up that arrives just before
 * it sleeps. 10 ms is a guess. */
#define START_LOOK_NS (10 * NS_PER_MS)

/* Longest spin: about the time to wake a parked thread (measured: 21 us). With this bound, spinning
 * costs at most twice as much as the best choice in hindsight (Karlin et al., 1991). */
#define SPIN_MAX_NS (20 * NS_PER_US)

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void pool_bounds(const struct weir_threads_spec *spec, int cores, int *min, int *max)
{
	int64_t least = spec->min < 0 ? cores : spec->min;
	int64_t most = spec->max < 0 ? cores : spec->max;

	if (spec->max < 0 && spec->min > most)
		most = spec->min;
	*max = (int)lesser(most, POOL_THREADS_MAX);
	*min = (int)lesser(least, *max);
}

int pool_new(struct weir_graph *graph, const char *name, const struct weir_threads_spec *spec,
    const struct sched_policy *policy, struct pool **out)
{
	struct pool *p = aligned_alloc(WEIR_CACHE_LINE, sizeof(*p));

	if (!p)
		return WEIR_ENOMEM;
	memset(p, 0, sizeof(*p));
	p->name = name;
	p->spec = spec;
	p->graph = graph;
	p->policy = policy;
	p->copies = 1;
	p->main = handler_main;
	p->due = handler_due;
	p->pinned = spec->pinned;
	p->spin_max_ns = spec->spin_ns >= 0 ? spec->spin_ns : task_cores() > 1 ? SPIN_MAX_NS : 0;
	p->backoff.ns = p->spare_backoff.ns = BACKOFF_FIRST_NS;
	lock_init(&p->lock);
	int min, max;
	pool_bounds(spec, task_cores(), &min, &max);
	pool_set_bounds(p, min, max);
	atomic_store(&p->target, spec->start > 0 ? (int)spec->start : min);
	*out = p;
	return 0;
}

int pool_add(struct pool *pool, struct sink *sink, int depth)
{
	size_t n = (size_t)pool->n_sinks + 1;
	struct sink **sinks = realloc(pool->sinks, n * sizeof(*sinks));

	if (!sinks)
		return WEIR_ENOMEM;
	pool->sinks = sinks;
	int *depths = realloc(pool->depths, n * sizeof(*depths));
	if (!depths)
		return WEIR_ENOMEM;
	pool->depths = depths;
	sinks[n - 1] = sink;
	depths[n - 1] = depth;
	pool->n_sinks++;
	sink->pool = pool;
	sink->requeue = handler_requeue;
	return 0;
}

static void handler_free(struct handler *h)
{
	struct schedstat_sample final;

	if (!h)
		return;
	if (h->hosted)
		schedstat_close(&h->sched, &final);
	if (h->wake_fd != -1)
		close(h->wake_fd);
	free(h->ready_ns);
	free(h->view);
	free(h);
}

static struct handler *handler_new(struct pool *pool, int rank)
{
	struct handler *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->pool = pool;
	h->rank = rank;
	h->wake_fd = -1;
	h->ready_ns = calloc((size_t)pool->n_sinks, sizeof(*h->ready_ns));
	h->view = calloc((size_t)pool->n_sinks, sizeof(*h->view));
	if (h->ready_ns && h->view)
		return h;
	handler_free(h);
	return NULL;
}

struct handler *pool_handler_locked(struct pool *pool, int rank)
{
	struct handler *h = atomic_load(&pool->handler[rank]);

	if (h)
		return h;
	h = handler_new(pool, rank);
	if (!h)
		return NULL;
	atomic_store(&pool->handler[rank], h);
	if (rank >= atomic_load(&pool->n_slots))
		atomic_store(&pool->n_slots, rank + 1);
	return h;
}

void pool_prepare_locked(struct handler *h)
{
	atomic_store(&h->wake, 0);
	atomic_store(&h->seat, NO_SEAT);
	atomic_store(&h->state, WEIR_THREAD_SPINNING);
	h->refusal = (struct pool_refusal){0};
	atomic_store(&h->slot, HANDLER_STARTING);
	h->spin_ns = h->pool->spin_max_ns;
}

static bool is_spare(const struct pool *pool, int rank)
{
	return pool->cores && rank >= pool->cores->first_spare;
}

/* Create the thread of `rank` if its slot is empty and belongs to no loop. Returns 1 if it was
 * created, 0 if there was nothing to do, or -1 on failure. */
static int spawn_locked(struct pool *pool, int rank) WEIR_REQUIRES(&pool->lock)
{
	struct handler *h = pool_handler_locked(pool, rank);
	char name[32];

	if (h && (h->hosted || atomic_load(&h->slot) != HANDLER_EMPTY))
		return 0;
	if (h) {
		pool_prepare_locked(h);
		handler_name(h, name, sizeof(name));
		if (task_start(&h->task, name, pool->main, h) == 0)
			return 1;
		atomic_store(&h->slot, HANDLER_EMPTY);
	}
	atomic_fetch_add(&pool->failures, 1);
	if (!is_spare(pool, rank))
		pool->refusal = (struct pool_refusal){.code = h ? WEIR_ESYS : WEIR_ENOMEM};
	return -1;
}

/* The caller holds pool->lock. */
static void back_off(struct backoff *b, int64_t now_ns)
{
	b->retry_ns = now_ns + b->ns;
	b->ns = b->ns < BACKOFF_LAST_NS / 2 ? 2 * b->ns : BACKOFF_LAST_NS;
}

/* Create the missing threads below the target, unless the back-off after a failure is still in
 * effect. A new failure starts the next back-off, which ends the loop. */
static void fill_locked(struct pool *pool, int64_t now_ns, struct pool_repairs *r)
    WEIR_REQUIRES(&pool->lock)
{
	int target = atomic_load(&pool->target);

	if (!pool->started || atomic_load(&pool->waits))
		return;
	for (int i = 0; i < target && now_ns >= pool->backoff.retry_ns; i++) {
		int rc = spawn_locked(pool, i);
		r->spawned += rc > 0;
		if (rc < 0) {
			r->failed++;
			r->refusal = pool->refusal;
			back_off(&pool->backoff, now_ns);
		}
	}
}

static void sum_sched(struct schedstat_sample *sum, const struct schedstat_sample *s)
{
	sum->cpu_ns += s->cpu_ns;
	sum->runq_ns += s->runq_ns;
}

static void close_sched(struct pool *pool, struct handler *h)
{
	struct schedstat_sample final;

	schedstat_close(&h->sched, &final);
	sum_sched(&pool->sched_gone, &final);
}

/* If the thread of `rank` has exited, join it and return true, with *refusal set if it could not start.
 * Without the lock, which the thread may want: only the control thread does this. */
static bool join_gone(struct pool *pool, int rank, struct pool_refusal *refusal)
{
	struct handler *h = atomic_load(&pool->handler[rank]);

	if (!h || atomic_load(&h->slot) != HANDLER_GONE)
		return false;
	task_join(&h->task);
	close_sched(pool, h);
	*refusal = h->refusal; /* before the slot is empty, since another thread may then fill it */
	atomic_store(&h->slot, HANDLER_EMPTY);
	return true;
}

void pool_start_spare(struct pool *pool, int rank, int64_t now_ns)
{
	struct pool_refusal refusal = {0};
	bool goes_on = false;

	join_gone(pool, rank, &refusal);
	lock_take(&pool->lock);
	struct backoff *b = &pool->spare_backoff;
	if (refusal.code != 0)
		back_off(b, now_ns);
	struct handler *h = pool_handler_locked(pool, rank);
	if (h && !atomic_load(&pool->stopping) && !atomic_load(&pool->waits) &&
	    now_ns >= b->retry_ns) {
		goes_on =
		    !atomic_exchange(&h->spare, true) && atomic_load(&h->slot) == HANDLER_LIVE;
		if (spawn_locked(pool, rank) < 0)
			back_off(b, now_ns);
	}
	lock_release(&pool->lock);
	if (goes_on) /* it was about to end, and has no seat */
		pool_deal(pool);
}

/* The pool is closed. */
static void end_spares_locked(struct pool *pool) WEIR_REQUIRES(&pool->lock)
{
	for (int i = 0; i < atomic_load(&pool->n_slots); i++) {
		struct handler *h = atomic_load(&pool->handler[i]);
		if (h)
			atomic_store(&h->spare, false);
	}
}

int pool_start(struct pool *pool)
{
	struct pool_repairs r = {0};

	lock_take(&pool->lock);
	pool->started = true;
	fill_locked(pool, clock_now_ns(), &r);
	lock_release(&pool->lock);
	return r.spawned;
}

void pool_started(struct pool *pool, struct pool_refusal *refusal)
{
	*refusal = (struct pool_refusal){0};
	for (int i = 0; i < atomic_load(&pool->n_slots); i++) {
		struct handler *h = atomic_load(&pool->handler[i]);
		while (h && atomic_load(&h->slot) == HANDLER_STARTING)
			futex_wait(&pool->begun, atomic_load(&pool->begun), START_LOOK_NS);
		if (h && atomic_load(&h->slot) == HANDLER_GONE && h->refusal.by)
			*refusal = h->refusal;
	}
}

void pool_begun(struct handler *h)
{
	struct pool *pool = h->pool;

	lock_take(&pool->lock);
	(is_spare(pool, h->rank) ? &pool->spare_backoff : &pool->backoff)->ns = BACKOFF_FIRST_NS;
	pool->refusal = (struct pool_refusal){0};
	lock_release(&pool->lock);
	atomic_store(&h->slot, HANDLER_LIVE);
	pool_deal(pool);
	atomic_fetch_add(&pool->begun, 1);
	futex_wake(&pool->begun);
}

void pool_apart(struct handler *h)
{
	struct pool *pool = h->pool;

	atomic_store(&h->slot, HANDLER_APART);
	pool_deal(pool);
	pool_wake(pool);                   /* pass on a wake-up that was sent to this thread */
	atomic_fetch_add(&pool->begun, 1); /* pairs with left_apart */
	futex_wake(&pool->begun);
}

void pool_not_begun(struct handler *h, struct pool_refusal refusal)
{
	struct pool *pool = h->pool;

	atomic_fetch_add(&pool->failures, 1);
	lock_take(&pool->lock);
	h->refusal = refusal;
	if (!is_spare(pool, h->rank))
		pool->refusal = refusal;
	lock_release(&pool->lock);
	atomic_store(&h->slot, HANDLER_GONE);
	atomic_fetch_add(&pool->begun, 1);
	futex_wake(&pool->begun);
}

bool pool_sched(struct pool *pool, struct schedstat_sample *sum)
{
	bool known = true;

	*sum = pool->sched_gone;
	for (int i = 0; i < atomic_load(&pool->n_slots); i++) {
		struct handler *h = atomic_load(&pool->handler[i]);
		struct schedstat_sample s;
		if (!h || atomic_load(&h->slot) == HANDLER_EMPTY)
			continue;
		known &= schedstat_read(&h->sched, &s);
		sum_sched(sum, &s);
	}
	return known;
}

/* Join the threads that have exited. */
static void join_all(struct pool *pool, int64_t now_ns, struct pool_repairs *r)
{
	for (int i = 0; i < atomic_load(&pool->n_slots); i++) {
		struct pool_refusal refusal;
		if (!join_gone(pool, i, &refusal))
			continue;
		r->joined++;
		if (refusal.code == 0)
			continue;
		if (is_spare(pool, i)) {
			lock_take(&pool->lock);
			back_off(&pool->spare_backoff, now_ns);
			lock_release(&pool->lock);
		} else {
			r->failed++;
			r->refusal = refusal;
		}
	}
}

struct pool_repairs pool_repair(struct pool *pool, int64_t now_ns)
{
	struct pool_repairs r = {0};

	join_all(pool, now_ns, &r);
	if (atomic_load(&pool->stopping))
		return r;
	lock_take(&pool->lock);
	if (r.failed > 0)
		back_off(&pool->backoff, now_ns);
	fill_locked(pool, now_ns, &r);
	lock_release(&pool->lock);
	return r;
}

int pool_set_target(struct pool *pool, int n)
{
	struct pool_repairs r = {0};

	lock_take(&pool->lock);
	int min = atomic_load(&pool->min), max = atomic_load(&pool->max);
	n = n < min ? min : n > max ? max : n;
	if (!atomic_load(&pool->stopping) && atomic_exchange(&pool->target, n) != n) {
		fill_locked(pool, clock_now_ns(), &r);
		pool_deal_locked(pool);
	}
	lock_release(&pool->lock);
	pool_wake_all(pool); /* Surplus threads exit, and all others check their new partitions. */
	pool_wake_apart(pool);
	return n;
}

void pool_set_bounds(struct pool *pool, int min, int max)
{
	lock_take(&pool->lock);
	atomic_store(&pool->min, min);
	atomic_store(&pool->max, max);
	int target = atomic_load(&pool->target);
	lock_release(&pool->lock);
	if (target != 0 && (target < min || target > max))
		pool_set_target(pool, target);
}

void pool_close(struct pool *pool)
{
	lock_take(&pool->lock);
	atomic_store(&pool->stopping, true);
	atomic_store(&pool->target, 0);
	end_spares_locked(pool);
	lock_release(&pool->lock);
	pool_wake_all(pool);
}

/* Wait until the thread of `h`, which belongs to a loop, no longer serves the pool. Returns false if
 * it still does at `at_ns`. */
static bool left_apart(struct handler *h, int64_t at_ns)
{
	struct pool *pool = h->pool;

	for (;;) {
		unsigned begun = atomic_load(&pool->begun);
		int slot = atomic_load(&h->slot);
		int64_t left_ns = at_ns == INT64_MAX ? -1 : at_ns - clock_now_ns();
		if (slot == HANDLER_APART || slot == HANDLER_EMPTY)
			return true;
		if (at_ns != INT64_MAX && left_ns <= 0)
			return false;
		futex_wait(&pool->begun, begun, left_ns);
	}
}

int pool_join(struct pool *pool, int64_t at_ns)
{
	int left = 0;

	for (int i = 0; i < atomic_load(&pool->n_slots); i++) {
		struct handler *h = atomic_load(&pool->handler[i]);
		if (!h || atomic_load(&h->slot) == HANDLER_EMPTY)
			continue;
		if (h->hosted) {
			left += !left_apart(h, at_ns);
			continue;
		}
		if (!task_join_until(&h->task, at_ns)) {
			left++;
			continue;
		}
		close_sched(pool, h); /* allowed, since the control thread has stopped */
		atomic_store(&h->slot, HANDLER_EMPTY);
	}
	return left;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	for (int i = 0; i < atomic_load(&pool->n_slots); i++)
		handler_free(atomic_load(&pool->handler[i]));
	cores_free(pool->cores);
	free(pool->sinks);
	free(pool->depths);
	lock_fini(&pool->lock);
	free(pool);
}

struct pool_refusal pool_refused(struct pool *pool)
{
	lock_take(&pool->lock);
	struct pool_refusal refusal = pool->refusal;
	lock_release(&pool->lock);
	return refusal;
}
