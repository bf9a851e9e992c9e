/* SPDX-License-Identifier: MIT */
/* Checks the widths of stages that hold events. */
#include "plan/plan.h"

#include "control/width.h"
#include "plan/policies.h"

static const struct weir_mark *mark_of(const struct weir_stage_spec *s)
{
	return plan_mark(&s->width.mark, &s->mark);
}

static void unknown_policy(struct plan *p, const struct weir_stage_spec *s)
{
	char hint[POLICIES_HINT_BYTES];

	weir_errs_add(p->errs, plan_mark(&s->width.policy_mark, mark_of(s)), WEIR_ENOENT,
	    policies_hint(policies_width, s->width.policy, hint),
	    "stage '%s': there is no width policy '%s'", s->name, s->width.policy);
}

static void check_bounds(struct plan *p, const struct weir_stage_spec *s)
{
	long long min = s->width.min, max = s->width.max, limit = s->queue.limit;

	if (max > limit)
		weir_errs_add(p->errs, mark_of(s), WEIR_EINVAL,
		    "raise 'limit' of 'queue', or lower 'max'",
		    "stage '%s': width: max %lld is greater than the limit of its queue, %lld, "
		    "which "
		    "bounds queued and held events together",
		    s->name, max, limit);
	else if (max >= 0 && min > max)
		weir_errs_add(p->errs, mark_of(s), WEIR_EINVAL, "raise 'max', or lower 'min'",
		    "stage '%s': width: min %lld is greater than max %lld", s->name, min, max);
	else if (max < 0 && s->width.given && min > limit)
		weir_errs_add(p->errs, mark_of(s), WEIR_EINVAL,
		    "raise 'limit' of 'queue', or lower 'min'",
		    "stage '%s': width: min %lld is greater than the limit of its queue, %lld",
		    s->name, min, limit);
}

void plan_width(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (!(ps->ops->flags & WEIR_STAGE_HOLDS)) {
		if (s->width.given)
			weir_errs_add(p->errs, mark_of(s), WEIR_EINVAL,
			    "remove 'width'; 'threads' says how many events the stage works on at "
			    "once",
			    "stage '%s' (%s) holds no events, so it has no width", s->name, s->use);
		return;
	}
	if (s->width.policy && !width_find(s->width.policy))
		unknown_policy(p, s);
	else
		check_bounds(p, s);
	if (ps->group >= 0 && !s->width.given)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "write 'width: { max: N }'",
		    "stage '%s' (%s) holds events and is in a group, so it needs a width of its "
		    "own",
		    s->name, s->use);
}
