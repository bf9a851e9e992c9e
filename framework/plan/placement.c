/* SPDX-License-Identifier: MIT */
/* Checks where and how stages run: their pools and groups, modes, keys and policies, and the thread
 * budget. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/task.h"
#include "control/batch.h"
#include "control/resize.h"
#include "plan/policies.h"
#include "sched/next.h"
#include "sched/cores.h"

static bool admission_queues(const struct weir_stage_spec *s)
{
	const struct admission_policy *policy = admission_find(weir_spec_admission(s, false));

	return policy && policy->queue;
}

/* Whether the stage has a queue. An inline stage has one only if it has a width. */
static bool has_queue(const struct plan_stage *ps)
{
	return !ps->spec->inlined || ps->ops->flags & WEIR_STAGE_HOLDS;
}

/* Why the stage cannot be inline, perhaps in text[size]; NULL if it can. */
static const char *why_not_inline(
    const struct plan *p, const struct plan_stage *ps, char *text, size_t size)
{
	const struct weir_stage_spec *s = ps->spec;

	if (ps->ops->flags & WEIR_STAGE_BLOCKS && !plan_may_block(p, ps, text, size))
		return text;
	if (ps->ops->flags & WEIR_STAGE_SINGLE)
		return "only one thread at a time may run the handler of the stage";
	if (s->mode != WEIR_MODE_SHARED)
		return "only 'mode: shared' can run in several calling threads at once";
	if (s->group && s->group[0])
		return "the stage is in a group";
	if (s->cohort.by && s->cohort.by[0])
		return "cohorts by key need a queue";
	if (!has_queue(ps) && admission_queues(s))
		return "the admission policy of the stage needs a queue";
	return NULL;
}

static void check_inline(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char text[sizeof(((struct weir_err *)0)->hint)];
	const char *why = s->inlined ? why_not_inline(p, ps, text, sizeof(text)) : NULL;

	if (why)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, why,
		    "stage '%s' (%s) cannot be inline", s->name, s->use);
}

/* While a pinned thread is blocked, the other stages of its group do not use its core. */
static void check_pinned(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (ps->group >= 0 && ps->ops->flags & WEIR_STAGE_BLOCKS &&
	    (p->spec->groups[ps->group].threads.pinned || plan_in_cores(p, ps)))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    "remove 'group', so that the stage has threads of its own",
		    "stage '%s' (%s) may block and would stop a core: the threads of group "
		    "'%s' are pinned",
		    s->name, s->use, s->group);
}

bool plan_key(const struct plan *p, struct plan_stage *ps, const char *name)
{
	if (strcmp(name, "event") == 0)
		ps->key.kind = KEY_EVENT;
	else if (strcmp(name, "class") == 0)
		ps->key.kind = KEY_CLASS;
	else if (strcmp(name, "stage") == 0 && ps->ops->key)
		ps->key.kind = KEY_STAGE;
	else if (plan_field_ref(p, ps->type, name, &ps->key.field))
		ps->key.kind = KEY_FIELD;
	else
		return false;
	return true;
}

/* Resolve the key of cohorts (`by`) or of partitions (`key`). If a stage has both, they must be the
 * same, since an event has only one key. */
static void resolve_key(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	const char *by = s->cohort.by ? s->cohort.by : "", *name = by;
	bool partitioned = s->mode == WEIR_MODE_PARTITIONED, keyed = s->key && s->key[0];
	const struct weir_mark *mark = keyed ? &s->mark : plan_mark(&s->mode_mark, &s->mark);

	if (partitioned)
		name = keyed ? s->key : "stage";
	if (partitioned && by[0] && strcmp(by, name) != 0)
		weir_errs_add(p->errs, mark, WEIR_EINVAL, "use the same field for both",
		    "stage '%s' is partitioned by '%s' and forms cohorts by '%s'", s->name, name,
		    by);
	if (!name[0])
		return;
	char hint[160];

	if (!plan_key(p, ps, name))
		weir_errs_add(p->errs, mark, WEIR_ENOENT,
		    plan_field_hint(p, ps->type, name,
			"use 'event', 'class', a field of the events or, if the stage type has a "
			"key, 'stage'",
			hint, sizeof(hint)),
		    "stage '%s' has no key '%s'", s->name, name);
}

static void check_threads(struct plan *p, const struct weir_threads_spec *t, const char *kind,
    const char *name, const struct weir_mark *mark)
{
	char hint[POLICIES_HINT_BYTES];
	int min, max;

	pool_bounds(t, task_cores(), &min, &max);
	if (t->min >= 0 && t->max >= 0 && t->min > t->max)
		weir_errs_add(p->errs, mark, WEIR_EINVAL, NULL,
		    "threads of %s '%s': min %lld is greater than max %lld", kind, name,
		    (long long)t->min, (long long)t->max);
	else if (t->start > 0 && (t->start < min || t->start > max))
		weir_errs_add(p->errs, mark, WEIR_EINVAL, NULL,
		    "threads of %s '%s': start %lld is not between min and max", kind, name,
		    (long long)t->start);
	if (t->policy && !resize_find(t->policy))
		weir_errs_add(p->errs, plan_mark(&t->policy_mark, mark), WEIR_ENOENT,
		    policies_hint(policies_resize, t->policy, hint),
		    "threads of %s '%s': there is no policy '%s'", kind, name, t->policy);
}

static void check_admission(struct plan *p, const struct weir_stage_spec *s)
{
	const struct weir_admission_spec *a = &s->admission;
	char hint[POLICIES_HINT_BYTES];

	if (!admission_find(weir_spec_admission(s, true)))
		weir_errs_add(p->errs, plan_mark(&a->policy_mark, &s->mark), WEIR_ENOENT,
		    policies_hint(policies_admission, a->policy, hint),
		    "stage '%s': there is no admission policy '%s'", s->name, a->policy);
	else if (strcmp(a->policy, "rate") == 0 && a->rate <= 0)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "write 'rate: 500'",
		    "stage '%s': admission policy 'rate' needs a rate", s->name);
	else if (strcmp(a->policy, "threshold") == 0 && a->threshold > s->queue.limit)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    "lower 'threshold', or raise 'limit' of 'queue'",
		    "stage '%s': a threshold of %lld is above the limit of the queue, %lld",
		    s->name, (long long)a->threshold, (long long)s->queue.limit);
}

static void check_degrade(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (s->degrade.above >= 1)
		return;
	if (s->degrade.below >= s->degrade.above)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "raise 'above', or lower 'below'",
		    "stage '%s': 'below' of 'degrade' is %g; it must be less than 'above', which "
		    "is %g",
		    s->name, s->degrade.below, s->degrade.above);
	if (!has_queue(ps) || ps->ops->flags & WEIR_STAGE_SOURCE)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, NULL,
		    "stage '%s' has no queue, and 'degrade' needs one", s->name);
}

const char *plan_childless(const struct weir_stage_ops *ops)
{
	if (ops->flags & WEIR_STAGE_SOURCE)
		return "is a source";
	if (!(ops->flags & WEIR_STAGE_ANY_OUTLETS) && (!ops->outlets || !ops->outlets[0].name))
		return "has no outlet";
	if (ops->accepts && ops->accepts->op == 0)
		return "accepts a type of event that has no struct weir_op";
	return NULL;
}

static void check_children(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	const char *why = plan_childless(ps->ops);

	if (why && s->children_mark.file)
		weir_errs_add(p->errs, &s->children_mark, WEIR_EINVAL, "remove 'children'",
		    "stage '%s' (%s) %s, so none of its events has children", s->name, s->use, why);
}

static void check_stage(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char hint[POLICIES_HINT_BYTES];

	check_degrade(p, ps);
	check_children(p, ps);
	plan_width(p, ps);
	plan_queue(p, ps, has_queue(ps) && !(ps->ops->flags & WEIR_STAGE_SOURCE));
	if (ps->ops->flags & WEIR_STAGE_SOURCE) {
		plan_source(p, ps);
		return;
	}
	check_inline(p, ps);
	check_pinned(p, ps);
	plan_stage_cores(p, ps);
	resolve_key(p, ps);
	plan_stage_serial(p, ps);
	if (s->cohort.policy && !batch_find(s->cohort.policy))
		weir_errs_add(p->errs, plan_mark(&s->cohort.policy_mark, &s->mark), WEIR_ENOENT,
		    policies_hint(policies_batch, s->cohort.policy, hint),
		    "stage '%s': there is no batch policy '%s'", s->name, s->cohort.policy);
	if (!s->inlined && ps->group < 0)
		check_threads(p, &s->threads, "stage", s->name, &s->mark);
	check_admission(p, s);
}

/* Threads that the pools need at startup: their sum, and the pool that needs the most. */
struct demand {
	int64_t sum, most;
	const char *kind, *name, *hint;
	const struct weir_mark *mark;
};

static void need(struct demand *d, int n, const char *kind, const char *name,
    const struct weir_mark *mark, const char *hint)
{
	d->sum += n;
	if (d->kind && n <= d->most)
		return;
	d->most = n;
	d->kind = kind;
	d->name = name;
	d->mark = mark;
	d->hint = hint;
}

static void want(struct demand *d, const struct weir_threads_spec *t, const char *kind,
    const char *name, const struct weir_mark *mark)
{
	int n, max;

	pool_bounds(t, task_cores(), &n, &max);
	bool starts = t->start > n;
	need(d, starts ? (int)t->start : n, kind, name, t->mark.file ? &t->mark : mark,
	    starts ? "lower 'threads.start', or share a group"
		   : "lower 'threads.min', or share a group");
}

static void check_budget(struct plan *p)
{
	struct demand d = {0};
	int budget = task_budget();

	for (int i = 0; i < p->n; i++) {
		const struct plan_stage *ps = &p->stages[i];
		if (!ps->ops || ps->ops->flags & WEIR_STAGE_SOURCE || ps->group >= 0)
			continue;
		if (!ps->spec->inlined)
			want(&d, &ps->spec->threads, "stage", ps->spec->name, &ps->spec->mark);
		else if (has_queue(ps)) /* see direct_threads in graph/build.c */
			need(&d, 1, "stage", ps->spec->name, &ps->spec->mark,
			    "put some of the stages into a group, instead of 'threads: inline'");
	}
	for (int g = 0; g < p->spec->n_groups; g++) {
		const struct weir_group_spec *gs = &p->spec->groups[g];
		struct weir_threads_spec t = plan_core_threads(gs);
		if (next_policy_find(gs->schedule))
			want(&d, &t, "group", gs->name, &gs->mark);
		else
			want(&d, &gs->threads, "group", gs->name, &gs->mark);
	}
	if (d.sum > budget)
		weir_errs_add(p->errs, d.mark, WEIR_EINVAL, d.hint,
		    "the pools need at least %lld threads, %s '%s' %lld of them, but the budget of "
		    "this machine is %d",
		    (long long)d.sum, d.kind, d.name, (long long)d.most, budget);
}

/* Check that a group does not share its name with a stage or another group. The name also
 * identifies the group's pool and threads, and its decisions in the journal. */
static void check_group_name(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];

	plan_name(p, "group", gs->name, &gs->mark);
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->spec->stages[i].name, gs->name) == 0)
			weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL,
			    "rename one of them: a pool has the name of its stage or its group",
			    "group '%s' has the name of a stage", gs->name);
	for (int k = 0; k < g; k++)
		if (strcmp(p->spec->groups[k].name, gs->name) == 0)
			weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL, NULL,
			    "there are two groups called '%s'", gs->name);
}

void plan_placement(struct plan *p)
{
	char hint[POLICIES_HINT_BYTES];

	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops)
			check_stage(p, &p->stages[i]);
	for (int g = 0; g < p->spec->n_groups; g++) {
		const struct weir_group_spec *gs = &p->spec->groups[g];
		check_group_name(p, g);
		check_threads(p, &gs->threads, "group", gs->name, &gs->mark);
		if (plan_schedule_known(gs))
			plan_group_cores(p, g);
		else
			weir_errs_add(p->errs, plan_mark(&gs->schedule_mark, &gs->mark),
			    WEIR_ENOENT, policies_hint(policies_sched, gs->schedule, hint),
			    "group '%s': there is no schedule '%s'", gs->name, gs->schedule);
	}
	check_budget(p);
}
