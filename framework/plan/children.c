/* SPDX-License-Identifier: MIT */
/*
 * Refuses cycles of awaits: a stage whose children (weir_stage_ops.children) come back to it, or make
 * others that do. Each event would await new ones for ever; only the bounds on generations and
 * children would end it. Links marked as loops count, since they do not end it either. A type that
 * ends the recursion itself, such as one that walks a tree, says so (WEIR_STAGE_RECURSES).
 */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

/* Write the way from stage `id` to stage `to` as " > a > b" to `text`. Returns false if there is
 * none. */
static bool find_way(const struct plan *p, int id, int to, bool *seen, char *text, size_t size)
{
	size_t n = strlen(text);

	snprintf(text + n, size - n, " > %s", p->stages[id].spec->name);
	if (id == to)
		return true;
	seen[id] = true;
	for (int i = 0; i < p->stages[id].n_outlets; i++) {
		int next = p->stages[id].outlets[i].to;
		if (next >= 0 && !seen[next] && find_way(p, next, to, seen, text, size))
			return true;
	}
	text[n] = '\0';
	return false;
}

static void check_outlet(struct plan *p, int id, const struct plan_outlet *o)
{
	bool seen[WEIR_STAGES_MAX] = {false};
	char way[160] = "";
	const struct plan_stage *ps = &p->stages[id];

	if (!o->children || o->to < 0 || !find_way(p, o->to, id, seen, way, sizeof(way)))
		return;
	weir_errs_add(p->errs, &o->mark, WEIR_EINVAL,
	    "send them elsewhere; a type that ends the recursion sets WEIR_STAGE_RECURSES",
	    "the children of stage '%s' come back to it (%s%s): each would await others for ever",
	    ps->spec->name, ps->spec->name, way);
}

void plan_children(struct plan *p)
{
	for (int i = 0; i < p->n; i++) {
		const struct plan_stage *ps = &p->stages[i];
		if (!ps->ops || ps->ops->flags & WEIR_STAGE_RECURSES)
			continue;
		for (int o = 0; o < ps->n_outlets; o++)
			check_outlet(p, i, &ps->outlets[o]);
	}
}
