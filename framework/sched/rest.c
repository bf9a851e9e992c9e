/* SPDX-License-Identifier: MIT */
/*
 * How a thread without work rests: it first polls, then parks until it is woken.
 *
 * No wake-up is lost, because both sides write before they read, all seq_cst:
 *   sender:  raise the queue length, then read n_spinning and n_idle
 *   thread:  raise n_idle (park) or lower n_spinning (end of spin), then read the queue lengths
 * A thread that is also an event loop parks in epoll (host_park), by the same protocol. The sender
 * of an event to a core group also sets a bit in between (sched/cores.h), and the threads of the
 * group read this bit before they park.
 */
#include "base/clock.h"
#include "base/futex.h"
#include "sched/cores.h"
#include "sched/host.h"

/* Shortest spin. A spin that finds nothing halves the next one, and a spin that finds work doubles
 * it. 2 us, a tenth of the longest spin, is a guess. */
#define SPIN_MIN_NS (2 * NS_PER_US)

/* Time after which a parked thread reads the time of the next expiry again, if another thread was
 * about to set it (EXPIRES_UNKNOWN). The other thread does not wake this one. 4 ms is a tick of the
 * timers: nothing expires more precisely. */
#define EXPIRES_LOOK_NS (4 * NS_PER_MS)

bool handler_spin(struct handler *h)
{
	struct pool *pool = h->pool;
	int64_t from_ns = clock_now_ns(), end_ns = from_ns + h->spin_ns;
	bool found = false;

	if (h->spin_ns <= 0)
		return false;
	atomic_fetch_add(&pool->n_spinning, 1);
	while (!found && !handler_surplus(h) && clock_now_ns() < end_ns) {
		task_relax();
		found = pool->due(h);
	}
	atomic_fetch_add_explicit(
	    &pool->spun_ns, (uint64_t)(clock_now_ns() - from_ns), memory_order_relaxed);
	atomic_fetch_sub(&pool->n_spinning, 1); /* seq_cst: see file top */
	if (found)
		h->spin_ns =
		    h->spin_ns * 2 < pool->spin_max_ns ? h->spin_ns * 2 : pool->spin_max_ns;
	else if (h->spin_ns / 2 >= SPIN_MIN_NS)
		h->spin_ns /= 2;
	return found || pool->due(h);
}

/* Return the time until which the thread may sleep if nobody wakes it: when the first lingering
 * batch is due, a held event expires, or an unknown expiry must be read again. INT64_MAX if there
 * is no such time. */
static int64_t earliest(const struct handler *h)
{
	int64_t at_ns = INT64_MAX;
	uint64_t barred = h->core ? h->core->barred : 0;

	for (int i = 0; i < h->pool->n_sinks; i++) {
		struct sink *s = h->pool->sinks[i];
		if (WEIR_UNLIKELY(barred >> (i & 63) & 1))
			continue;
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

static void park(struct handler *h)
{
	struct pool *pool = h->pool;
	bool stands_in = h->core && h->core->stands_in;

	handler_state(h, WEIR_THREAD_IDLE);
	lock_take(&pool->lock);
	struct handler **at = &pool->idle;
	while (WEIR_UNLIKELY(stands_in) && *at) /* see spare.h */
		at = &(*at)->next_idle;
	h->next_idle = *at;
	*at = h;
	h->listed = true;
	atomic_fetch_add(&pool->n_idle, 1); /* seq_cst: see file top */
	handler_relinger(h);                /* a later change wakes the thread (pool_linger) */
	lock_release(&pool->lock);
}

void handler_park(struct handler *h)
{
	park(h);
	if ((h->pool->due(h) || handler_surplus(h)) && unpark(h)) {
		handler_state(h, WEIR_THREAD_SPINNING);
		return;
	}
	sleep_until_woken(h, earliest(h));
	handler_state(h, WEIR_THREAD_SPINNING);
}

/* The thread need not await a wake-up that is on its way: the write to its eventfd will only make it
 * look at its sockets once more. */
void host_park(struct handler *h, void (*sleep)(void *arg, int64_t until_ns), void *arg)
{
	park(h);
	if (h->pool->due(h) || handler_surplus(h))
		sleep(arg, 0);
	else
		sleep(arg, earliest(h));
	unpark(h);
	handler_state(h, WEIR_THREAD_SPINNING);
}
