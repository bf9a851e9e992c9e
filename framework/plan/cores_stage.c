/* SPDX-License-Identifier: MIT */
/* Checks the knobs of stages in core groups, and that they are written nowhere else. */
#include "plan/plan.h"

#include "plan/policies.h"

const char *plan_cores_key(const struct weir_stage_spec *s, const struct weir_mark **mark)
{
	const struct weir_mark *own = &s->local_mark;
	const char *key = s->local != WEIR_LOCAL_AUTO ? "local" : NULL;

	if (s->urgent.events > 0 || s->urgent.wait_ns > 0) {
		own = &s->urgent_mark;
		key = "urgent";
	} else if (s->serial && s->serial[0]) {
		own = &s->serial_mark;
		key = "serial";
	}
	*mark = plan_mark(own, &s->mark);
	return key;
}

static void check_outside(struct plan *p, const struct weir_stage_spec *s)
{
	const struct weir_mark *mark;
	const char *key = plan_cores_key(s, &mark);
	char hint[POLICIES_HINT_BYTES];

	if (key)
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
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
		weir_errs_add(p->errs, plan_mark(&ps->spec->local_mark, &ps->spec->mark),
		    WEIR_EINVAL, "remove 'local'",
		    "stage '%s' %s, so its events take the queue, and 'local: always' means "
		    "nothing",
		    ps->spec->name, why);
}

/* The largest number of events that a core may see at a stage with `limit`. Half of the limit is
 * divided among the cells, and the rest is the queue's (queue_set_cells). A core sees its cell and
 * its share of the queue, which it rounds up (view_stage, sched/core_take.c). Of a serial stage, it sees
 * its inbox instead, which may have all events of the queue. */
static int64_t most_seen(const struct weir_group_spec *gs, int64_t limit, bool serial)
{
	int64_t n = plan_core_threads(gs).min, share = limit / n + 1;
	int64_t others = (n - 1) * (limit / (2 * n)); /* their cells: queue_cell_share */
	int64_t most = serial ? limit - others : share;

	return most < limit ? most : limit;
}

static void check_urgent(
    struct plan *p, const struct plan_stage *ps, const struct weir_group_spec *gs)
{
	const struct weir_stage_spec *s = ps->spec;
	int64_t most = most_seen(gs, s->queue.limit, plan_has_serial_key(p, ps));
	const struct weir_mark *mark = plan_mark(&s->urgent_mark, &s->mark);

	if (s->urgent.events > most)
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "lower 'events' of 'urgent', or raise 'limit' of 'queue'",
		    "stage '%s': 'urgent' needs %lld events on a core, but a core sees at most "
		    "%lld, its share of the limit of %lld",
		    s->name, (long long)s->urgent.events, (long long)most,
		    (long long)s->queue.limit);
	if (s->urgent.wait_ns > weir_spec_slo_ns(p->spec, s))
		weir_errs_add(p->errs, mark, WEIR_EINVAL, "lower 'wait' of 'urgent'",
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
	check_urgent(p, ps, &p->spec->groups[ps->group]);
}
