/* SPDX-License-Identifier: MIT */
/* Starts and ends threads that stand in for blocked cores; see spare.h. */
#include "sched/spare.h"

#include <stdlib.h>
#include <string.h>

#include "sched/handler.h"
#include "sched/serial.h"

/* Bit i: spares may not take events of stage i. */
static uint64_t barred(const struct core_group *group)
{
	uint64_t set = group->kept | (group->serial ? group->serial->stages : 0);

	return set & group->expiring ? set | group->expiring : set;
}

/* Return the spare of core `k`, which is made if need be; NULL if out of memory. */
static struct core *make(struct core_group *group, int k)
{
	struct core *core = atomic_load(&group->watched[k].spare);

	if (core)
		return core;
	core = aligned_alloc(WEIR_CACHE_LINE, sizeof(*core));
	if (!core)
		return NULL;
	memset(core, 0, sizeof(*core));
	core->group = group;
	core->number = group->first_spare + k;
	core->stands_in = true;
	core->cell = &group->cells[(size_t)group->max * (size_t)group->n_stages];
	core->barred = barred(group);
	atomic_store(&group->watched[k].spare, core);
	return core;
}

void spare_start(struct core_group *group, int k, int64_t now_ns)
{
	if (group->first_spare + k < POOL_THREADS_MAX && make(group, k))
		pool_start_spare(group->pool, group->first_spare + k, now_ns);
}

void spare_stop(struct core_group *group, int k)
{
	if (group->first_spare + k < POOL_THREADS_MAX)
		pool_stop_spare(group->pool, group->first_spare + k);
}
