/* SPDX-License-Identifier: MIT */
/* Checks where sources run: in threads of their own, or as the cores of a core group (sched/host.h). */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "plan/policies.h"
#include "sched/next.h"

bool plan_is_member(const struct plan *p, const struct plan_stage *ps, int g)
{
	(void)p;
	return ps->group == g && ps->ops && !(ps->ops->flags & WEIR_STAGE_SOURCE);
}

/* The key `threads` under `with:`, if it names a number; NULL if not. */
static const struct weir_node *own_threads(const struct weir_stage_spec *s)
{
	const struct weir_node *n = s->with ? weir_node_get(s->with, "threads") : NULL;

	return n && n->kind == WEIR_NODE_SCALAR && strcmp(n->text, "auto") != 0 ? n : NULL;
}

const struct weir_mark *plan_with_mark(const struct weir_stage_spec *s, const char *key)
{
	const struct weir_node *n = s->with ? weir_node_get(s->with, key) : NULL;

	return n ? &n->mark : &s->mark;
}

const char *plan_source_in(const struct plan *p, int g)
{
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].group == g && p->stages[i].ops &&
		    p->stages[i].ops->flags & WEIR_STAGE_SOURCE)
			return p->stages[i].spec->name;
	return NULL;
}

static const char *other_source(const struct plan *p, const struct plan_stage *ps)
{
	for (int i = 0; i < p->n && &p->stages[i] != ps; i++)
		if (p->stages[i].group == ps->group && p->stages[i].ops &&
		    p->stages[i].ops->flags & WEIR_STAGE_SOURCE)
			return p->stages[i].spec->name;
	return NULL;
}

/* The limit of clients of a loop is not that of a core, which has the clients that the kernel gives it. */
static void check_per_loop(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (ps->per_loop > 0)
		weir_errs_add(p->errs, plan_with_mark(s, "per_thread"), WEIR_EINVAL,
		    "remove 'group', or 'per_thread'",
		    "stage '%s' is in group '%s', whose cores are its I/O threads, so it cannot "
		    "have "
		    "'per_thread'",
		    s->name, s->group);
}

static void check_group(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	const struct weir_group_spec *gs = &p->spec->groups[ps->group];
	const struct weir_node *threads = own_threads(s);
	const char *other = other_source(p, ps);

	if (!(ps->ops->flags & WEIR_STAGE_HOSTS))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "remove 'group'",
		    "stage '%s' (%s) is a source with threads of its own, so it can be in no group",
		    s->name, s->use);
	else if (plan_schedule_known(gs) && !plan_in_cores(p, ps))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    "remove 'group', or give the group a schedule per core, such as fifo",
		    "stage '%s' (%s) is a source: it needs a group with a schedule per core, and "
		    "that of "
		    "'%s' is '%s'",
		    s->name, s->use, gs->name, gs->schedule);
	else if (other)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "give each source a group of its own",
		    "group '%s' has two sources, '%s' and '%s'; each core has one event loop",
		    gs->name, other, s->name);
	if (threads)
		weir_errs_add(p->errs, &threads->mark, WEIR_EINVAL,
		    "remove it; 'cores' of the group says how many there are",
		    "stage '%s' is in group '%s', whose cores are its I/O threads, so it cannot "
		    "have "
		    "'threads'",
		    s->name, gs->name);
	check_per_loop(p, ps);
}

void plan_source(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	const struct weir_mark *mark;
	const char *key = plan_cores_key(s, &mark);

	if (key)
		weir_errs_add(p->errs, mark, WEIR_EINVAL, "remove it",
		    "stage '%s' (%s) is a source: no core visits it, so it cannot have '%s'",
		    s->name, s->use, key);
	if (s->inlined || s->mode != WEIR_MODE_SHARED)
		weir_errs_add(p->errs, plan_mark(&s->mode_mark, &s->mark), WEIR_EINVAL, NULL,
		    "stage '%s' (%s) is a source: it has no mode, and no thread calls it", s->name,
		    s->use);
	else if (ps->group >= 0)
		check_group(p, ps);
}
