/* SPDX-License-Identifier: MIT */
/*
 * Searches the stages downstream of an outlet. The search follows the links and visits each stage
 * once, even if the graph has loops or diamonds. Runs in the thread that builds a graph.
 */
#include <weir/stage.h>

#include <stdatomic.h>

#include "stage/stage.h"

static const struct weir_stage *look(
    struct weir_stage *st, const struct weir_event_type *type, unsigned flags, unsigned walk)
{
	const struct weir_stage *found = NULL;

	if (st->walk == walk)
		return NULL;
	st->walk = walk;
	if (st->ops->accepts != WEIR_ANY_EVENT && (st->ops->flags & flags) != flags)
		return st;
	for (int i = 0; i < st->n_outlets && !found; i++) {
		const struct outlet *o = &st->outlets[i];
		if (o->to && (o->type == type || !o->type))
			found = look(o->to, type, flags, walk);
	}
	return found;
}

const struct weir_stage *weir_behind_without(struct weir_stage *st, int outlet, unsigned flags)
{
	static atomic_uint walks;

	if (!weir_outlet_linked(st, outlet))
		return NULL;
	return look(st->outlets[outlet].to, st->outlets[outlet].type, flags,
	    atomic_fetch_add(&walks, 1) + 1);
}
