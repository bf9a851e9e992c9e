/* SPDX-License-Identifier: MIT */
/*
 * Orders the stages: finds undeclared cycles, computes depths for draining and layout, and checks
 * event types along links.
 *
 * Links marked `loop: true` may close a cycle; they are ignored for depths and the drain order. A
 * cycle of inline stages would never end, so it is an error even if declared.
 */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum colour { WHITE, GREY, BLACK };

struct walk {
	struct plan *p;
	enum colour *colour;
	int n_done;
	bool inline_only; /* follow only links between inline stages, even if marked `loop` */
};

static bool follows(
    const struct walk *w, const struct plan_stage *from, const struct plan_outlet *o)
{
	if (o->to < 0 || !w->p->stages[o->to].ops)
		return false;
	if (w->inline_only)
		return from->spec->inlined && w->p->stages[o->to].spec->inlined;
	return !o->loop;
}

static void cycle_error(struct walk *w, const struct plan_stage *ps, const struct plan_outlet *o)
{
	const char *to = w->p->stages[o->to].spec->name;

	if (w->inline_only)
		weir_errs_add(w->p->errs, &o->mark, WEIR_EINVAL,
		    "give one of its stages a queue: remove 'threads: inline'",
		    "the link from '%s' to '%s' closes a cycle of inline stages", ps->spec->name,
		    to);
	else
		weir_errs_add(w->p->errs, &o->mark, WEIR_EINVAL,
		    "if this is intended, write { stage: NAME, loop: true }",
		    "the link from '%s' to '%s' closes a cycle", ps->spec->name, to);
}

/* Visit stages depth first. p->order is filled from its end, so that each stage precedes all stages
 * that it leads to. */
static void visit(struct walk *w, int id)
{
	struct plan_stage *ps = &w->p->stages[id];

	w->colour[id] = GREY;
	for (int i = 0; i < ps->n_outlets; i++) {
		struct plan_outlet *o = &ps->outlets[i];
		if (!follows(w, ps, o))
			continue;
		if (w->colour[o->to] == GREY)
			cycle_error(w, ps, o);
		else if (w->colour[o->to] == WHITE)
			visit(w, o->to);
	}
	w->colour[id] = BLACK;
	if (!w->inline_only)
		w->p->order[w->p->n - ++w->n_done] = id;
}

static void walk_all(struct plan *p, bool inline_only)
{
	struct walk w = {.p = p, .inline_only = inline_only};

	w.colour = calloc((size_t)p->n, sizeof(*w.colour));
	if (!w.colour) {
		weir_errs_add(p->errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
		return;
	}
	/* Visit stages in the order of the file. Sources usually come first there, so the link that
	 * is reported as closing a cycle is the one that leads back. */
	for (int i = 0; i < p->n; i++)
		if (w.colour[i] == WHITE)
			visit(&w, i);
	free(w.colour);
}

static void set_depths(struct plan *p)
{
	for (int k = 0; k < p->n; k++) {
		struct plan_stage *ps = &p->stages[p->order[k]];
		for (int i = 0; i < ps->n_outlets; i++) {
			struct plan_outlet *o = &ps->outlets[i];
			if (o->to < 0 || o->loop)
				continue;
			struct plan_stage *to = &p->stages[o->to];
			if (to->depth < ps->depth + 1)
				to->depth = ps->depth + 1;
		}
	}
}

void plan_order(struct plan *p)
{
	int before = p->errs->total;

	walk_all(p, false);
	if (p->errs->total == before)
		set_depths(p);
	walk_all(p, true);
}

static void check_type(struct plan *p, struct plan_stage *from, struct plan_outlet *o)
{
	struct plan_stage *to = &p->stages[o->to];

	if (!o->type || !to->ops)
		return;
	if (to->ops->accepts && to->ops->accepts != o->type)
		weir_errs_add(p->errs, &o->mark, WEIR_ETYPE, NULL,
		    "'%s' of stage '%s' carries %s, but '%s' (%s) takes %s", o->name,
		    from->spec->name, o->type->name, to->spec->name, to->spec->use,
		    to->ops->accepts->name);
	else if (to->type && to->type != o->type && !to->ops->accepts)
		weir_errs_add(p->errs, &o->mark, WEIR_ETYPE, NULL,
		    "stage '%s' would receive both %s and %s", to->spec->name, to->type->name,
		    o->type->name);
	else
		to->type = o->type;
}

/* Resolve the types of the outlets of a stage whose input type is known, and check their links.
 * Returns whether the type of another stage became known. */
static bool resolve_outlets(struct plan *p, struct plan_stage *ps)
{
	bool moved = false;

	for (int i = 0; i < ps->n_outlets; i++) {
		struct plan_outlet *o = &ps->outlets[i];
		if (!o->type)
			o->type = ps->type;
		if (!o->type || o->typed)
			continue;
		o->typed = true;
		if (o->to >= 0) {
			moved |= !p->stages[o->to].type;
			check_type(p, ps, o);
		}
		if (!p->source_type && ps->ops->flags & WEIR_STAGE_SOURCE)
			p->source_type = o->type;
	}
	return moved;
}

void plan_types(struct plan *p)
{
	bool moved = true;

	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops)
			p->stages[i].type = p->stages[i].ops->accepts;
	/* Upstream stages come first, so one pass carries types through stages that accept any
	 * type. Stages to which only loop links lead may come before their senders, and need
	 * further passes. */
	while (moved) {
		moved = false;
		for (int k = 0; k < p->n; k++) {
			struct plan_stage *ps = &p->stages[p->order[k]];
			moved |= ps->ops && resolve_outlets(p, ps);
		}
	}
}
