/* SPDX-License-Identifier: MIT */
/* Checks `mode: replicated`: a state per core needs cores, and a type that is made for it. Checks
 * `replicas` of a group: its cores must be divisible, and its stages must work in copies. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "plan/policies.h"

static void check_replicable(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (ps->ops->flags & WEIR_STAGE_SINGLE)
		weir_errs_add(p->errs, plan_mark(&s->mode_mark, &s->mark), WEIR_EINVAL,
		    "remove 'mode'",
		    "stage '%s' (%s) is always exclusive, so it cannot be replicated", s->name,
		    s->use);
	else if (!(ps->ops->flags & WEIR_STAGE_REPLICABLE))
		weir_errs_add(p->errs, plan_mark(&s->mode_mark, &s->mark), WEIR_EINVAL,
		    "remove 'mode': the threads share the state",
		    "stage '%s' (%s) keeps one state, so it cannot be replicated", s->name, s->use);
}

/* The thread of a source's loop has no replica. */
static void check_apart(struct plan *p, const struct plan_stage *ps)
{
	const char *source = plan_source_in(p, ps->group);

	if (source)
		weir_errs_add(p->errs, plan_mark(&ps->spec->mode_mark, &ps->spec->mark),
		    WEIR_EINVAL, "remove 'mode', or take the source out of the group",
		    "stage '%s' cannot be replicated: the cores of its group '%s' are the I/O "
		    "threads of '%s'",
		    ps->spec->name, p->spec->groups[ps->group].name, source);
}

/* Events that wait in the queue are taken by any core. */
static void check_kept(struct plan *p, const struct weir_stage_spec *s)
{
	const char *key = NULL;
	char hint[80];

	if (s->cohort.linger_ns > 0)
		key = "linger";
	else if (s->cohort.by && s->cohort.by[0])
		key = "cohort.by";
	else if (s->queue.discipline == WEIR_DISCIPLINE_SHORTEST)
		key = "discipline: shortest";
	if (!key)
		return;
	snprintf(hint, sizeof(hint), "remove '%s', or 'mode'", key);
	weir_errs_add(p->errs, plan_mark(&s->mode_mark, &s->mark), WEIR_EINVAL, hint,
	    "stage '%s': events of a replicated stage stay on their core, but with '%s' they take "
	    "the queue, from which all cores take events",
	    s->name, key);
}

void plan_stage_replicas(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char hint[POLICIES_HINT_BYTES];

	if (s->mode != WEIR_MODE_REPLICATED)
		return;
	if (!plan_in_cores(p, ps)) {
		weir_errs_add(p->errs, plan_mark(&s->mode_mark, &s->mark), WEIR_EINVAL,
		    plan_schedules(
			hint, sizeof(hint), "put it into a group whose 'schedule' is one of "),
		    "stage '%s': 'mode: replicated' needs a group with a schedule per core",
		    s->name);
		return;
	}
	check_replicable(p, ps);
	check_apart(p, ps);
	if (s->local == WEIR_LOCAL_NEVER)
		weir_errs_add(p->errs, plan_mark(&s->local_mark, &s->mark), WEIR_EINVAL,
		    "remove 'local'",
		    "stage '%s': events of a replicated stage stay on their core, but 'local: "
		    "never' moves them",
		    s->name);
	check_kept(p, s);
}

static void check_divisible(struct plan *p, const struct weir_group_spec *gs, int cores)
{
	char hint[120];
	int r = (int)gs->replicas, less = cores / r * r;

	if (plan_core_threads(gs).min != cores) {
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "write one number of 'cores'",
		    "group '%s' has replicas, so the number of its cores cannot change", gs->name);
		return;
	}
	if (cores % r == 0)
		return;
	if (less > 0)
		snprintf(hint, sizeof(hint),
		    "write 'cores: %d' or 'cores: %d', or other 'replicas'", less, less + r);
	else
		snprintf(hint, sizeof(hint), "write at most 'replicas: %d'", cores);
	weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL, hint,
	    "group '%s': %d core%s cannot be divided equally among %d replicas", gs->name, cores,
	    cores == 1 ? "" : "s", r);
}

/* Why the stage cannot be in several copies; NULL if it can. *mark is the position of the
 * reason. */
static const char *never_copied(const struct plan_stage *ps, const struct weir_mark **mark)
{
	int mode = ps->spec->mode;

	*mark =
	    plan_mark(ps->serial ? &ps->spec->serial_mark : &ps->spec->mode_mark, &ps->spec->mark);
	if (mode == WEIR_MODE_EXCLUSIVE || ps->ops->flags & WEIR_STAGE_SINGLE)
		return "is exclusive";
	if (mode == WEIR_MODE_PARTITIONED)
		return "is partitioned";
	if (ps->serial)
		return "has a serial key";
	if (ps->ops->flags & WEIR_STAGE_HOLDS)
		return "has a width";
	return NULL;
}

void plan_group_replicas(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];

	if (gs->replicas <= 1)
		return;
	check_divisible(p, gs, (int)plan_core_threads(gs).max);
	if (plan_source_in(p, g))
		weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL,
		    "remove 'replicas', or take the source out of the group",
		    "group '%s' has replicas, but its cores are the I/O threads of '%s'", gs->name,
		    plan_source_in(p, g));
	for (int i = 0; i < p->n; i++) {
		const struct plan_stage *ps = &p->stages[i];
		const struct weir_mark *mark;
		const char *why = ps->group == g && ps->ops ? never_copied(ps, &mark) : NULL;
		if (why)
			weir_errs_add(p->errs, mark, WEIR_EINVAL,
			    "remove 'group' from the stage, or 'replicas' from the group",
			    "stage '%s' %s, so it cannot be in the replicas of group '%s'",
			    ps->spec->name, why, gs->name);
	}
}
