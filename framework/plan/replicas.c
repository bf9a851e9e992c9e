/* SPDX-License-Identifier: MIT */
/* Checks `mode: replicated`: a state per core needs cores, and a type that is made for it. */
#include "plan/plan.h"

#include <string.h>

#include "plan/policies.h"

static void check_replicable(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (ps->ops->flags & WEIR_STAGE_SINGLE)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "remove 'mode'",
		    "stage '%s' (%s) is always exclusive, so it cannot be replicated", s->name,
		    s->use);
	else if (!(ps->ops->flags & WEIR_STAGE_REPLICABLE))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    "remove 'mode': the threads share the state",
		    "stage '%s' (%s) keeps one state, so it cannot be replicated", s->name, s->use);
}

void plan_stage_replicas(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char hint[POLICIES_HINT_BYTES];

	if (s->mode != WEIR_MODE_REPLICATED)
		return;
	if (!plan_in_cores(p, ps)) {
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    plan_schedules(
			hint, sizeof(hint), "put it into a group whose 'schedule' is one of "),
		    "stage '%s': 'mode: replicated' needs a group with a schedule per core",
		    s->name);
		return;
	}
	check_replicable(p, ps);
	if (s->local == WEIR_LOCAL_NEVER)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "remove 'local'",
		    "stage '%s': events of a replicated stage stay on their core, but 'local: "
		    "never' moves them",
		    s->name);
	if (s->cohort.by && strcmp(s->cohort.by, "stage") == 0)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "name a field of the events",
		    "stage '%s': 'cohort.by: stage' is decided before an event has a core, and a "
		    "replicated stage has its state per core",
		    s->name);
}
