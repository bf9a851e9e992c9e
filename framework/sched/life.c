/* SPDX-License-Identifier: MIT */
/*
 * How a handler thread begins and ends.
 *
 * If a handler calls pthread_exit, the cleanup handler finishes the remaining events of the batch
 * as WEIR_EDIED, and the control thread creates a new thread. A thread that exits wakes another one.
 */
#include <sched.h>
#include <stdio.h>

#include "sched/cores.h"
#include "sched/handler.h"
#include "stage/thread.h"

int handler_number(const struct handler *h)
{
	const struct core_group *group = h->pool->cores;

	return group && h->rank >= group->first_spare ? h->rank - group->first_spare : h->rank;
}

void handler_name(const struct handler *h, char *name, size_t size)
{
	int number = handler_number(h);

	snprintf(name, size, "%.10s/%d%s", h->pool->name, number, number == h->rank ? "" : "+");
}

bool handler_begin(struct handler *h)
{
	char name[24];

	handler_name(h, name, sizeof(name));
	schedstat_begin(&h->sched);
	int rc = thread_enter_pool(h->pool->graph, name, h->pool);
	if (rc != 0) {
		schedstat_end(&h->sched);
		pool_not_begun(h, (struct pool_refusal){.by = thread_refused_by(), .code = rc});
		return false;
	}
	thread_self()->spare = handler_number(h) != h->rank;
	atomic_store(&thread_self()->number, handler_number(h));
	pool_begun(h);
	for (int i = 0; i < h->pool->n_sinks; i++)
		h->ready_ns[i] = INT64_MAX;
	return true;
}

void handler_pin(int left)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
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

void handler_leave(void *arg)
{
	struct handler *h = arg;
	struct pool *pool = h->pool;

	/* If a handler run below ends the thread, too, glibc first calls the cleanup handler that
	 * is pushed below, and then this one again. */
	if (!thread_current)
		return;
	h->passing = false; /* the events that are sent below are for other threads */
	pthread_cleanup_push(handler_leave, h); /* a handler run below may call pthread_exit, too */
	core_retire(h);
	if (h->sink || thread_in_handler()) /* exited in a batch, or while passing on its events */
		thread_died(&pool->deaths);
	if (h->sink)
		batch_release(h);
	thread_end();
	core_clear(h);
	pthread_cleanup_pop(0);
	thread_leave();
	schedstat_end(&h->sched);
	atomic_store(&h->slot, HANDLER_GONE);
	pool_deal(pool);
	pool_wake(pool); /* pass on a wake-up that was sent to this thread */
}
