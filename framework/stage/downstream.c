/* SPDX-License-Identifier: MIT */
/*
 * Searches the stages downstream of an outlet. The search follows the links and visits each stage
 * once, even if the graph has loops or diamonds. Runs in the thread that builds a graph.
 */
#include <weir/stage.h>

#include <stdatomic.h>

#include "stage/stage.h"

/* What is looked for: a stage whose flags lack one of `flags`, or of the type `type`. */
struct wanted {
	const struct weir_event_type *event;
	unsigned flags;
	const struct weir_stage_ops *type; /* NULL: `flags` count */
};

static bool is_wanted(const struct weir_stage *st, const struct wanted *w)
{
	if (w->type)
		return st->ops == w->type;
	return st->ops->accepts != WEIR_ANY_EVENT && (st->ops->flags & w->flags) != w->flags;
}

static const struct weir_stage *look(struct weir_stage *st, const struct wanted *w, unsigned walk)
{
	const struct weir_stage *found = NULL;

	if (st->walk == walk)
		return NULL;
	st->walk = walk;
	if (is_wanted(st, w))
		return st;
	for (int i = 0; i < st->n_outlets && !found; i++) {
		const struct outlet *o = &st->outlets[i];
		if (o->to && (o->type == w->event || !o->type))
			found = look(o->to, w, walk);
	}
	return found;
}

static const struct weir_stage *look_behind(struct weir_stage *st, int outlet, struct wanted w)
{
	static atomic_uint walks;

	if (!weir_outlet_linked(st, outlet))
		return NULL;
	w.event = st->outlets[outlet].type;
	return look(st->outlets[outlet].to, &w, atomic_fetch_add(&walks, 1) + 1);
}

const struct weir_stage *weir_behind_without(struct weir_stage *st, int outlet, unsigned flags)
{
	return look_behind(st, outlet, (struct wanted){.flags = flags});
}

const struct weir_stage *weir_behind_of(
    struct weir_stage *st, int outlet, const struct weir_stage_ops *type)
{
	return look_behind(st, outlet, (struct wanted){.type = type});
}
