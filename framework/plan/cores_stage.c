/* SPDX-License-Identifier: MIT */
/* Checks the knobs of stages in core groups, and that they are written nowhere else. */
#include "plan/plan.h"

#include "plan/policies.h"

const char *plan_cores_key(const struct weir_stage_spec *s)
{
	if (s->urgent.events > 0 || s->urgent.wait_ns > 0)
		return "urgent";
	if (s->serial && s->serial[0])
		return "serial";
	return s->local != WEIR_LOCAL_AUTO ? "local" : NULL;
}

static void check_outside(struct plan *p, const struct weir_stage_spec *s)
{
	const char *key = plan_cores_key(s);
	char hint[POLICIES_HINT_BYTES];

	if (key)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    plan_schedules(
			hint, sizeof(hint), "put it into a group whose 'schedule' is one of "),
		    "stage '%s': '%s' needs a group with a schedule per core", s->name, key);
}

/* Return why all events of the stage take its queue, or NULL if they do not. Discipline `shortest` is
 * checked in queue.c, and replicated stages in replicas.c. */
static const char *why_queued(const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (s->mode == WEIR_MODE_EXCLUSIVE || ps->ops->flags & WEIR_STAGE_SINGLE)
		return "is exclusive";
	if (s->mode == WEIR_MODE_PARTITIONED)
		return "is partitioned";
	if (ps->ops->flags & WEIR_STAGE_HOLDS)
		return "has a width";
	if (s->mode == WEIR_MODE_REPLICATED)
		return NULL;
	if (s->cohort.linger_ns > 0)
		return "has 'linger'";
	return s->cohort.by && s->cohort.by[0] ? "has 'cohort.by'" : NULL;
}

static void check_local(struct plan *p, const struct plan_stage *ps)
{
	const char *why = why_queued(ps);

	if (why && ps->spec->local == WEIR_LOCAL_ALWAYS)
		weir_errs_add(p->errs, &ps->spec->mark, WEIR_EINVAL, "remove 'local'",
		    "stage '%s' %s, so its events take the queue, and 'local: always' means "
		    "nothing",
		    ps->spec->name, why);
}

/* The largest number of events that a core may see at a stage with `limit`. Its cell and its share of
 * the queue are, together, the limit divided by the number of cores; it rounds its share of the queue
 * up (view_stage, sched/core_take.c). */
static int64_t most_seen(const struct weir_group_spec *gs, int64_t limit)
{
	int64_t most = limit / plan_core_threads(gs).min + 1;

	return most < limit ? most : limit;
}

static void check_urgent(
    struct plan *p, const struct weir_stage_spec *s, const struct weir_group_spec *gs)
{
	int64_t most = most_seen(gs, s->queue.limit);

	if (s->urgent.events > most)
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL,
		    "lower 'events' of 'urgent', or raise 'limit' of 'queue'",
		    "stage '%s': 'urgent' needs %lld events on a core, but a core sees at most "
		    "%lld, its share of the limit of %lld",
		    s->name, (long long)s->urgent.events, (long long)most,
		    (long long)s->queue.limit);
	if (s->urgent.wait_ns > weir_spec_slo_ns(p->spec, s))
		weir_errs_add(p->errs, &s->mark, WEIR_EINVAL, "lower 'wait' of 'urgent'",
		    "stage '%s': 'wait' of 'urgent' is longer than its objective, so it would act "
		    "too late",
		    s->name);
}

/* Whether the group of the stage, or its schedule, is unknown: an error that others would follow from. */
static bool is_lost(const struct plan *p, const struct plan_stage *ps)
{
	return ps->group >= 0 ? !plan_schedule_known(&p->spec->groups[ps->group])
			      : ps->spec->group && ps->spec->group[0];
}

void plan_stage_cores(struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;

	if (is_lost(p, ps))
		return;
	plan_stage_replicas(p, ps);
	if (!plan_in_cores(p, ps)) {
		check_outside(p, s);
		return;
	}
	check_local(p, ps);
	check_urgent(p, s, &p->spec->groups[ps->group]);
}
