/* SPDX-License-Identifier: MIT */
/* Shows what each core of a core group has done at a stage. */
#include <stdlib.h>

#include "graph/group.h"
#include "sched/cores.h"

static void view_core(const struct core *core, int place, int64_t now_ns, struct weir_core_view *v)
{
	const struct core_book *b = &core->book[place];
	int64_t oldest_ns = cell_oldest_ns(&core->cell[place]);

	v->urgent = book_read(&b->visits[NEXT_URGENT]);
	v->starved = book_read(&b->visits[NEXT_STARVED]);
	v->visits = v->urgent + v->starved + book_read(&b->visits[NEXT_POLICY]);
	v->from_queue = book_read(&b->from_queue);
	v->events = v->from_queue + book_read(&b->from_cell);
	v->dealt = book_read(&b->dealt);
	v->moved = core->cell[place].serial ? book_read(&core->moved) : 0;
	v->waiting = cell_length(&core->cell[place]);
	v->oldest_wait_ns = oldest_ns < now_ns ? now_ns - oldest_ns : 0;
}

int graph_group_view(const struct weir_stage *st, int64_t now_ns, struct weir_stage_view *v)
{
	const struct pool *pool = st->pool;

	if (!pool || !pool->cores)
		return 0;
	int most = atomic_load(&pool->max), seen = atomic_load(&pool->n_slots);
	v->n_cores = most > seen ? most : seen; /* those that left have books, too */
	v->cores = calloc((size_t)v->n_cores, sizeof(*v->cores));
	if (!v->cores)
		return WEIR_ENOMEM;
	for (int k = 0; k < v->n_cores; k++)
		view_core(&pool->cores->core[k], st->sink.place, now_ns, &v->cores[k]);
	return 0;
}
