/* SPDX-License-Identifier: MIT */
/* Lets the thread of an event loop be a core of a core group; see host.h. */
#include "sched/host.h"

#include <sys/eventfd.h>

#include "base/clock.h"
#include "sched/cores.h"
#include "sched/serial.h"
#include "stage/stage.h"

int host_cores(const struct pool *pool)
{
	return pool && pool->cores ? atomic_load(&pool->max) : 0;
}

/* ---- main ---- */

static int open_fd(struct handler *h)
{
	if (h->wake_fd == -1)
		h->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return h->wake_fd == -1 ? WEIR_ESYS : 0;
}

int host_claim(struct pool *pool, int rank, struct handler **out)
{
	struct handler *h;
	int rc = WEIR_EINVAL;

	if (rank >= host_cores(pool))
		return rc;
	lock_take(&pool->lock);
	h = pool_handler_locked(pool, rank);
	if (!h)
		rc = WEIR_ENOMEM;
	else if (atomic_load(&h->slot) != HANDLER_EMPTY)
		rc = WEIR_EBUSY;
	else
		rc = open_fd(h);
	if (rc == 0) {
		h->hosted = true;
		pool_prepare_locked(h);
		*out = h;
	}
	lock_release(&pool->lock);
	return rc;
}

void host_release(struct handler *h)
{
	atomic_store(&h->slot, HANDLER_EMPTY);
}

/* ---- the thread ---- */

static void forget_lingering(struct handler *h)
{
	for (int i = 0; i < h->pool->n_sinks; i++)
		h->ready_ns[i] = INT64_MAX;
}

static void join(struct handler *h)
{
	thread_forget_behind();
	forget_lingering(h);
	if (h->pool->cores->serial)
		serial_join(h->core);
	thread_self()->core = h->core;
	pool_begun(h);
}

void host_begin(struct handler *h)
{
	schedstat_begin(&h->sched);
	forget_lingering(h);
	core_begin(h);
	pool_begun(h);
	thread_forget_behind();
}

void host_resume(struct handler *h)
{
	schedstat_begin(&h->sched);
	core_pin(h);
}

void host_died(struct handler *h)
{
	if (h->sink)
		batch_release(h);
	schedstat_end(&h->sched);
}

static void leave(struct handler *h)
{
	core_retire(h);
	core_clear(h);
	pool_apart(h);
}

void host_end(struct handler *h)
{
	if (atomic_load(&h->slot) == HANDLER_LIVE)
		leave(h);
	schedstat_end(&h->sched);
}

bool host_follow(struct handler *h)
{
	for (;;) {
		bool core = atomic_load_explicit(&h->slot, memory_order_relaxed) == HANDLER_LIVE;
		if (WEIR_LIKELY(core != handler_surplus(h)))
			return core;
		if (core)
			leave(h);
		else
			join(h);
		/* The target may have changed meanwhile, when no wake-up could find the thread.
		 * seq_cst: the slot was written before. */
		(void)atomic_load(&h->pool->target);
	}
}

/* Whether core_take may have something to do. */
static bool has_work(const struct handler *h)
{
	const struct core *core = h->core;
	struct core_group *group = core->group;

	return core->filled || group->expiring ||
	       atomic_load_explicit(&group->arrived, memory_order_relaxed) ||
	       atomic_load_explicit(&core->asked, memory_order_relaxed);
}

void host_pass_on(struct handler *h)
{
	if (atomic_load_explicit(&h->pool->cores->arrived, memory_order_relaxed))
		pool_wake(h->pool);
}

bool host_run(struct handler *h, int64_t *batch_ns, int *events, bool *spent)
{
	int64_t now_ns = thread_self()->now_ns;
	bool any = false;

	for (;;) {
		*spent = *events >= HOST_EVENTS || *batch_ns >= HOST_NS;
		if (*spent || !has_work(h))
			return any;
		thread_touch(now_ns);
		int64_t from_ns = now_ns;
		int n = core_take(h, now_ns);
		if (n == 0)
			return any;
		now_ns = core_run(h, now_ns);
		*events += n;
		*batch_ns += now_ns - from_ns;
		any = true;
	}
}

void host_spins(struct handler *h, bool on)
{
	atomic_fetch_add(&h->pool->n_spinning, on ? 1 : -1); /* seq_cst: see rest.c */
}
