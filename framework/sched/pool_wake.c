/* SPDX-License-Identifier: MIT */
/* Wakes parked threads of pools; see pool.h. */
#include <errno.h>
#include <unistd.h>

#include "base/futex.h"
#include "sched/pool.h"

static void rouse(struct handler *h)
{
	static const uint64_t one = 1;

	atomic_store(&h->wake, 1);
	if (h->wake_fd == -1) {
		futex_wake(&h->wake);
		return;
	}
	ssize_t n = TEMP_FAILURE_RETRY(write(h->wake_fd, &one, sizeof(one)));
	(void)n; /* fails only if the counter is full; a wake-up is then pending */
}

/* Take `h` off the idle list. Returns false if it was not on the list. */
static bool unlist_locked(struct pool *pool, struct handler *h) WEIR_REQUIRES(&pool->lock)
{
	if (!h->listed)
		return false;
	for (struct handler **at = &pool->idle; *at; at = &(*at)->next_idle) {
		if (*at == h) {
			*at = h->next_idle;
			break;
		}
	}
	h->listed = false;
	atomic_fetch_sub(&pool->n_idle, 1);
	return true;
}

void pool_stop_spare(struct pool *pool, int rank)
{
	struct handler *h = atomic_load(&pool->handler[rank]);

	if (!h)
		return;
	lock_take(&pool->lock);
	/* seen by the thread before it parks, or found parked */
	bool was = atomic_exchange(&h->spare, false);
	bool parked = unlist_locked(pool, h);
	lock_release(&pool->lock);
	if (parked)
		rouse(h);
	if (was) /* its core has the seat again, even if the spare is blocked, too */
		pool_deal(pool);
}

bool pool_wake(struct pool *pool)
{
	if (WEIR_UNLIKELY(pool->copies > 1)) /* a spinning thread may belong to another copy */
		return pool_wake_parts(pool, ~0ULL) > 0;
	/* seq_cst: pairs with handler_spin and handler_park (rest.c), which change these counters
	 * and then check the queues again. */
	if (atomic_load(&pool->n_spinning) > 0 || atomic_load(&pool->n_idle) == 0)
		return false;
	lock_take(&pool->lock);
	struct handler *h = pool->idle;
	if (h)
		unlist_locked(pool, h);
	lock_release(&pool->lock);
	if (h)
		rouse(h);
	return h != NULL;
}

/* Wake the parked ones of the threads whose seats or, if `by_rank`, whose ranks are in the bit set
 * `set`. Returns how many were woken. */
static int wake_set(struct pool *pool, uint64_t set, bool by_rank)
{
	struct handler *wake[PARTITIONS_MAX];
	int n = 0;

	if (atomic_load(&pool->n_idle) == 0)
		return 0;
	lock_take(&pool->lock);
	int seats = atomic_load(&pool->n_seats);
	for (; seats > 0 && set != 0; set &= set - 1) {
		int at = __builtin_ctzll(set);
		struct handler *h = by_rank ? atomic_load(&pool->handler[at])
					    : atomic_load(&pool->seated[at % seats]);
		if (h && unlist_locked(pool, h))
			wake[n++] = h;
	}
	lock_release(&pool->lock);
	for (int i = 0; i < n; i++)
		rouse(wake[i]);
	return n;
}

/* Wake a parked thread of each copy in `parts`. */
static int wake_copies(struct pool *pool, uint64_t parts)
{
	struct handler *wake[PARTITIONS_MAX];
	int n = 0;

	lock_take(&pool->lock);
	for (struct handler *h = pool->idle, *next; h && parts != 0; h = next) {
		uint64_t bit = 1ULL << h->rank % pool->copies;
		next = h->next_idle;
		if (!(parts & bit) || !unlist_locked(pool, h))
			continue;
		parts &= ~bit;
		wake[n++] = h;
	}
	lock_release(&pool->lock);
	for (int i = 0; i < n; i++)
		rouse(wake[i]);
	return n;
}

int pool_wake_parts(struct pool *pool, uint64_t parts)
{
	if (WEIR_UNLIKELY(pool->copies > 1))
		return atomic_load(&pool->n_idle) == 0 ? 0 : wake_copies(pool, parts);
	return wake_set(pool, parts, false);
}

int pool_wake_ranks(struct pool *pool, uint64_t ranks)
{
	return wake_set(pool, ranks, true);
}

void pool_wake_all(struct pool *pool)
{
	struct handler *woken[POOL_THREADS_MAX];
	int n = 0;

	/* Empty the list first: a thread that parks again is put at the head of the list and would
	 * otherwise be woken again, endlessly. Threads of event loops may park again even before
	 * they are roused. */
	lock_take(&pool->lock);
	for (; pool->idle; pool->idle = pool->idle->next_idle) {
		pool->idle->listed = false;
		atomic_fetch_sub(&pool->n_idle, 1);
		woken[n++] = pool->idle;
	}
	lock_release(&pool->lock);
	for (int i = 0; i < n; i++)
		rouse(woken[i]);
}

void pool_linger(struct pool *pool)
{
	/* seq_cst: a thread that parks later sees it, and others are woken */
	atomic_fetch_add(&pool->lingers, 1);
	pool_wake_all(pool);
}

void pool_wake_apart(struct pool *pool)
{
	for (int i = 0; i < atomic_load(&pool->n_slots); i++) {
		struct handler *h = atomic_load(&pool->handler[i]);
		if (h && atomic_load(&h->slot) == HANDLER_APART)
			rouse(h);
	}
}
