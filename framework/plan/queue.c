/* SPDX-License-Identifier: MIT */
/* Checks `queue:` of stages with `discipline: shortest`. */
#include "plan/plan.h"

#include <string.h>

/* Whether a value of the field may begin with a digit. */
static bool may_be_number(const struct weir_event_type *type, const struct weir_field *field)
{
	char digit[2] = "0", hint[256];

	if (!type->may_match)
		return true;
	for (; digit[0] <= '9'; digit[0]++)
		if (type->may_match(field, digit, 1, true, hint, sizeof(hint)))
			return true;
	return false;
}

static void resolve_field(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	char hint[160];

	ps->cost.kind = COST_FIELD;
	if (!plan_field_ref(p, ps->type, s->queue.by, &ps->cost.field))
		weir_errs_add(p->errs, &s->mark, WEIR_ENOENT,
		    plan_field_hint(
			p, ps->type, s->queue.by, "use a field of the events", hint, sizeof(hint)),
		    "stage '%s': 'by' of 'queue' is '%s', but the events (%s) have no such field",
		    s->name, s->queue.by, ps->type ? ps->type->name : "of any type");
	else if (ps->cost.field.field && !may_be_number(ps->type, ps->cost.field.field))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "use a field that is a number",
		    "stage '%s': 'by' of 'queue' is '%s', which is never a number in events of "
		    "type "
		    "'%s'",
		    s->name, s->queue.by, ps->type->name);
}

/* Events of any type may have a hint; those without are served last. */
static void resolve_hint(struct plan *p, struct plan_stage *ps)
{
	ps->cost.kind = COST_TYPE;
	if (ps->type && !ps->type->cost)
		weir_errs_add(p->errs, &ps->spec->mark, WEIR_EINVAL,
		    "name a field: 'by: FIELD' of 'queue'",
		    "stage '%s': events of type '%s' do not say how much work they are, which "
		    "discipline 'shortest' must know",
		    ps->spec->name, ps->type->name);
}

static void check_order(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (ps->group >= 0 && p->spec->groups[ps->group].order == WEIR_ORDER_NEWEST)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    "remove 'order' of the group, or 'discipline' of the stage",
		    "stage '%s': discipline 'shortest' contradicts 'order: newest' of group '%s'",
		    s->name, s->group);
	if (s->local == WEIR_LOCAL_ALWAYS)
		weir_errs_add(p->errs, plan_mark(&s->local_mark, &s->mark), WEIR_EINVAL,
		    "remove 'local', or 'discipline'",
		    "stage '%s': its queue orders the events, so 'local: always' means nothing",
		    s->name);
}

void plan_queue(struct plan *p, struct plan_stage *ps, bool queued)
{
	const struct weir_stage_spec *s = ps->spec;
	const struct weir_queue_spec *q = &s->queue;
	bool by = q->by && q->by[0];

	if (q->discipline != WEIR_DISCIPLINE_SHORTEST) {
		if (by || q->starve_ns >= 0)
			weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
			    "write 'discipline: shortest', or remove it",
			    "stage '%s': '%s' of 'queue' is for discipline 'shortest'", s->name,
			    by ? "by" : "starve");
		return;
	}
	if (!queued) {
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, NULL,
		    "stage '%s' has no queue, and discipline 'shortest' needs one", s->name);
		return;
	}
	if (by)
		resolve_field(p, ps);
	else
		resolve_hint(p, ps);
	check_order(p, ps);
	if (q->starve_ns > weir_spec_slo_ns(p->spec, s))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "lower 'starve', or raise 'slo'",
		    "stage '%s': 'starve' of 'queue' is longer than its objective, so it would act "
		    "too late",
		    s->name);
}
