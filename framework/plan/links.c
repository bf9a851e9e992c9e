/* SPDX-License-Identifier: MIT */
/* Checks outlets and their links (unknown, duplicate, dangling, missing) and finds unreachable
 * stages. */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>

static int count_outlets(const struct weir_stage_ops *ops)
{
	int n = 0;

	while (ops->outlets && ops->outlets[n].name)
		n++;
	return n;
}

/* Allocate the outlets that the stage type names. If the spec may name others
 * (WEIR_STAGE_ANY_OUTLETS), also allocate space for those. */
static int make_outlets(struct plan_stage *ps)
{
	int fixed = count_outlets(ps->ops);
	int extra = ps->ops->flags & WEIR_STAGE_ANY_OUTLETS ? ps->spec->n_to : 0;

	ps->outlets = calloc((size_t)(fixed + extra) + 1, sizeof(*ps->outlets));
	if (!ps->outlets)
		return WEIR_ENOMEM;
	for (int i = 0; i < fixed; i++) {
		const struct weir_outlet *o = &ps->ops->outlets[i];
		ps->outlets[i] = (struct plan_outlet){.name = o->name,
		    .to = -1,
		    .type = o->type,
		    .optional = o->optional,
		    .children = i < 32 && ps->ops->children >> i & 1,
		    .any = o->type == WEIR_ANY_EVENT,
		    .mark = ps->spec->mark};
	}
	ps->n_outlets = fixed;
	return 0;
}

static struct plan_outlet *find_outlet(struct plan_stage *ps, const char *name)
{
	if (!name[0])
		return ps->n_outlets > 0 ? &ps->outlets[0] : NULL;
	for (int i = 0; i < ps->n_outlets; i++)
		if (strcmp(ps->outlets[i].name, name) == 0)
			return &ps->outlets[i];
	if (!(ps->ops->flags & WEIR_STAGE_ANY_OUTLETS))
		return NULL;
	ps->outlets[ps->n_outlets] = (struct plan_outlet){
	    .name = name, .to = -1, .type = ps->ops->accepts, .optional = true};
	return &ps->outlets[ps->n_outlets++];
}

/* Return the position of one word of a link: of its outlet, or of its target. That of the link may
 * cover both, from the first character of the outlet to the last of the target. */
static struct weir_mark mark_of(const struct weir_link_spec *l, bool outlet)
{
	struct weir_mark mark = l->mark;
	int n_outlet = (int)strlen(l->outlet), n_stage = (int)strlen(l->stage);

	if (n_outlet == 0 || mark.len <= n_outlet + n_stage)
		return mark;
	if (outlet) {
		mark.len = n_outlet;
	} else {
		mark.col += mark.len - n_stage;
		mark.len = n_stage;
	}
	return mark;
}

static void unknown_outlet(struct plan *p, struct plan_stage *ps, const struct weir_link_spec *l)
{
	char hint[140] = "this stage has no outlets";
	struct weir_mark mark = mark_of(l, true);
	const char *names[16];
	int n = 0;
	size_t at = 0;

	for (; n < ps->n_outlets && n < 16; n++)
		names[n] = ps->outlets[n].name;
	const char *near = n > 0 ? weir_nearest(l->outlet, names, n) : NULL;
	if (near)
		at = (size_t)snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	for (int i = 0; !near && i < ps->n_outlets && at < sizeof(hint) - 1; i++)
		at += (size_t)snprintf(hint + at, sizeof(hint) - at, "%s'%s'",
		    i ? ", " : "its outlets are ", ps->outlets[i].name);
	if (l->outlet[0])
		weir_errs_add(p->errs, &mark, WEIR_ENOENT, hint,
		    "stage '%s' (%s) has no outlet '%s'", ps->spec->name, ps->spec->use, l->outlet);
	else
		weir_errs_add(p->errs, &l->mark, WEIR_ENOENT, "remove 'to'",
		    "stage '%s' (%s) has no outlets", ps->spec->name, ps->spec->use);
}

static int find_stage(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->spec->stages[i].name, name) == 0)
			return i;
	return -1;
}

static void unknown_target(struct plan *p, struct plan_stage *ps, const struct weir_link_spec *l)
{
	const char **names = calloc((size_t)p->n + 1, sizeof(*names));
	struct weir_mark mark = mark_of(l, false);
	char hint[120] = "";

	for (int i = 0; names && i < p->n; i++)
		names[i] = p->spec->stages[i].name;
	const char *near = names ? weir_nearest(l->stage, names, p->n) : NULL;
	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	weir_errs_add(p->errs, &mark, WEIR_ENOENT, hint,
	    "stage '%s' links to '%s', which does not exist", ps->spec->name, l->stage);
	free(names);
}

static void link_one(struct plan *p, struct plan_stage *ps, const struct weir_link_spec *l)
{
	struct plan_outlet *o = find_outlet(ps, l->outlet);
	int to = find_stage(p, l->stage);

	if (!o) {
		unknown_outlet(p, ps, l);
		return;
	}
	if (to < 0) {
		unknown_target(p, ps, l);
		o->to = -2; /* linked to an invalid stage, so not reported as missing */
		return;
	}
	if (o->to >= 0)
		weir_errs_add(p->errs, &l->mark, WEIR_EINVAL, NULL,
		    "outlet '%s' of stage '%s' is linked twice", o->name, ps->spec->name);
	if (p->stages[to].ops && p->stages[to].ops->flags & WEIR_STAGE_SOURCE) {
		weir_errs_add(p->errs, &l->mark, WEIR_EINVAL, NULL,
		    "stage '%s' links to '%s', which is a source and takes no events",
		    ps->spec->name, l->stage);
		o->to = -2;
		return;
	}
	o->to = to;
	o->loop = l->loop;
	o->mark = l->mark;
}

static void check_missing(struct plan *p, struct plan_stage *ps)
{
	for (int i = 0; i < ps->n_outlets; i++) {
		struct plan_outlet *o = &ps->outlets[i];
		if (o->to == -1 && !o->optional)
			weir_errs_add(p->errs, &ps->spec->mark, WEIR_ELINK, "add it under 'to:'",
			    "outlet '%s' of stage '%s' (%s) must be linked", o->name,
			    ps->spec->name, ps->spec->use);
		if (o->to == -2)
			o->to = -1;
	}
}

/* Return an unlinked outlet of `ps` that emits events of `type`, or NULL if there is none. */
static const char *free_outlet(const struct plan_stage *ps, const struct weir_event_type *type)
{
	const struct weir_outlet *o = ps->ops ? ps->ops->outlets : NULL;

	for (int i = 0; o && o[i].name; i++)
		if (o[i].type == type && ps->outlets[i].to == -1)
			return o[i].name;
	return NULL;
}

/* Report that no source leads to stage `id`. Suggest an unlinked outlet that emits the events that
 * the stage accepts, if there is one. */
static void unreachable(struct plan *p, int id)
{
	const struct weir_stage_ops *ops = p->stages[id].ops;
	const struct weir_stage_spec *lost = p->stages[id].spec;
	char hint[160] = "link another stage to this one, or remove this one";

	for (int i = 0; ops && ops->accepts && i < p->n; i++) {
		const char *outlet = i == id ? NULL : free_outlet(&p->stages[i], ops->accepts);
		if (!outlet)
			continue;
		snprintf(hint, sizeof(hint),
		    "add '%.40s: %.40s' under 'to:' of '%.30s', or remove this stage", outlet,
		    lost->name, p->stages[i].spec->name);
		break;
	}
	weir_errs_add(
	    p->errs, &lost->mark, WEIR_ELINK, hint, "no source leads to stage '%s'", lost->name);
}

/* Report stages that cannot be reached from a source. If a spec has no source, the program that
 * embeds weir offers events to any stage, so all stages count as reachable. */
static void check_reachable(struct plan *p)
{
	bool seen[WEIR_STAGES_MAX] = {false}, sources = false, moved = true;

	for (int i = 0; i < p->n; i++) {
		seen[i] = p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE;
		sources |= seen[i];
	}
	while (moved) {
		moved = false;
		for (int i = 0; i < p->n; i++)
			for (int o = 0; seen[i] && o < p->stages[i].n_outlets; o++) {
				int to = p->stages[i].outlets[o].to;
				if (to >= 0 && !seen[to])
					seen[to] = moved = true;
			}
	}
	for (int i = 0; i < p->n; i++)
		if (sources && !seen[i])
			unreachable(p, i);
}

static int link_all(struct plan *p, struct plan_stage *ps)
{
	if (make_outlets(ps) != 0)
		return weir_errs_add(p->errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	for (int k = 0; k < ps->spec->n_to; k++)
		link_one(p, ps, &ps->spec->to[k]);
	return 0;
}

int plan_link_names(struct plan *p)
{
	int rc = 0;

	for (int i = 0; i < p->n && rc == 0; i++)
		if (p->stages[i].ops)
			rc = link_all(p, &p->stages[i]);
	return rc;
}

void plan_links(struct plan *p)
{
	bool whole = true;

	for (int i = 0; i < p->n; i++) {
		struct plan_stage *ps = &p->stages[i];
		whole &= ps->ops != NULL;
		if (!ps->ops)
			continue;
		if (link_all(p, ps) != 0)
			return;
		check_missing(p, ps);
	}
	if (whole && p->errs->total == 0)
		check_reachable(p);
}
