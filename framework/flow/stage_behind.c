/* SPDX-License-Identifier: MIT */
/*
 * What lies behind an outlet: a walk along the links that comes to each stage once, loops and diamonds or not. While a graph
 * is built, by the thread that builds it.
 */
#include <weir/stage.h>

#include <stdatomic.h>

#include "flow/stage.h"

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
