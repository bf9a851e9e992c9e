/* SPDX-License-Identifier: MIT */
/*
 * Assigns seats, which number the serving threads of a pool without gaps. Partitions are assigned
 * to seats, so a thread that has exited or could not start has no partition. Policies count only
 * serving threads.
 *
 * A thread has a seat from its start until its exit, while its rank is below the target. Seats
 * change under pool->lock. Readers without the lock may see some old and some new seats. That is
 * harmless: a lease keeps two threads from serving one partition, and all parked threads check
 * again after a change.
 */
#include "sched/pool.h"

void pool_deal_locked(struct pool *pool)
{
	int n = 0, slots = atomic_load(&pool->n_slots), target = atomic_load(&pool->target);

	for (int rank = 0; rank < slots; rank++) {
		struct handler *h = atomic_load(&pool->handler[rank]);
		bool serves = h && rank < target && atomic_load(&h->slot) == HANDLER_LIVE;
		if (h)
			atomic_store(&h->seat, serves ? n : NO_SEAT);
		if (serves && n < PARTITIONS_MAX)
			atomic_store(&pool->seated[n], h);
		n += serves;
	}
	atomic_store(&pool->n_seats, n);
}

static bool has_partitions(const struct pool *pool)
{
	bool has = false;

	for (int i = 0; i < pool->n_sinks; i++)
		has |= pool->sinks[i]->queue.n_parts > 1;
	return has;
}

void pool_deal(struct pool *pool)
{
	lock_take(&pool->lock);
	pool_deal_locked(pool);
	lock_release(&pool->lock);
	if (has_partitions(pool))
		pool_wake_all(pool);
}

bool pool_rank_idle(const struct pool *pool, int rank)
{
	/* acquire: pairs with the store in pool_handler_locked (pool.c) */
	const struct handler *h = atomic_load_explicit(&pool->handler[rank], memory_order_acquire);

	return h && atomic_load_explicit(&h->slot, memory_order_relaxed) == HANDLER_LIVE &&
	       atomic_load_explicit(&h->state, memory_order_relaxed) != WEIR_THREAD_BUSY;
}

bool pool_seat_idle(const struct pool *pool, int seat)
{
	/* acquire: pairs with the store in pool_deal_locked */
	const struct handler *h = atomic_load_explicit(&pool->seated[seat], memory_order_acquire);

	return h && atomic_load_explicit(&h->state, memory_order_relaxed) != WEIR_THREAD_BUSY;
}
