/* SPDX-License-Identifier: MIT */
/* Counts the threads of pools; see pool.h. */
#include <string.h>

#include "sched/cores.h"

/* Of the threads with ranks below `n`. */
static int read_slots(const struct pool *pool, int n, int states[WEIR_THREAD_STATES])
{
	int live = 0;

	memset(states, 0, WEIR_THREAD_STATES * sizeof(states[0]));
	for (int i = 0; i < n; i++) {
		const struct handler *h = atomic_load(&pool->handler[i]);
		int slot = h ? atomic_load(&h->slot) : HANDLER_EMPTY;
		if (slot != HANDLER_LIVE && slot != HANDLER_STARTING)
			continue;
		states[atomic_load_explicit(&h->state, memory_order_relaxed)]++;
		live++;
	}
	return live;
}

int pool_read(const struct pool *pool, int states[WEIR_THREAD_STATES])
{
	return read_slots(pool, atomic_load(&pool->n_slots), states);
}

int pool_read_own(const struct pool *pool, int states[WEIR_THREAD_STATES])
{
	int n = atomic_load(&pool->n_slots);

	if (pool->cores && n > pool->cores->first_spare)
		n = pool->cores->first_spare;
	return read_slots(pool, n, states);
}

bool pool_serves(const struct pool *pool)
{
	bool serves = false;

	for (int i = 0; !serves && i < atomic_load(&pool->n_slots); i++) {
		const struct handler *h = atomic_load(&pool->handler[i]);
		serves = h && atomic_load(&h->slot) == HANDLER_LIVE;
	}
	return serves;
}
