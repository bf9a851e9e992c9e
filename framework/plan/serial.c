/* SPDX-License-Identifier: MIT */
/* Checks serial keys: `serial:` of core groups and of their stages. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include <weir/log.h>

#include "sched/next.h"

static const struct weir_group_spec *group_of(const struct plan *p, const struct plan_stage *ps)
{
	return plan_in_cores(p, ps) ? &p->spec->groups[ps->group] : NULL;
}

/* The field of the stage's serial key, or NULL. */
static const char *field_of(const struct plan *p, const struct plan_stage *ps)
{
	const struct weir_group_spec *gs = group_of(p, ps);
	const char *own = ps->spec->serial, *name;

	if (!gs)
		return NULL;
	name = own && own[0] ? own : gs->serial;
	return name && name[0] && strcmp(name, "none") != 0 ? name : NULL;
}

bool plan_has_serial_key(const struct plan *p, const struct plan_stage *ps)
{
	return field_of(p, ps) != NULL;
}

static const char *mode_name(int mode)
{
	static const char *const name[] = {
	    [WEIR_MODE_EXCLUSIVE] = "exclusive", [WEIR_MODE_PARTITIONED] = "partitioned"};

	return mode > 0 && (size_t)mode < sizeof(name) / sizeof(name[0]) ? name[mode]
									 : "replicated";
}

/* Return what the stage has that a serial key excludes, or NULL. */
static const char *against(const struct plan_stage *ps, char *text, size_t size)
{
	const struct weir_stage_spec *s = ps->spec;

	if (s->mode != WEIR_MODE_SHARED)
		snprintf(text, size, "'mode: %s'", mode_name(s->mode));
	else if (ps->ops->flags & WEIR_STAGE_SINGLE)
		snprintf(text, size, "a type that runs in one thread at a time");
	else if (ps->ops->flags & WEIR_STAGE_LOOP)
		snprintf(text, size, "a type with a thread of its own");
	else if (s->cohort.by && s->cohort.by[0])
		snprintf(text, size, "'cohort.by'");
	else if (s->queue.discipline != WEIR_DISCIPLINE_AUTO &&
		 s->queue.discipline != WEIR_DISCIPLINE_FIFO)
		snprintf(text, size, "a 'discipline' that is not 'fifo'");
	else
		return NULL;
	return text;
}

void plan_stage_serial(struct plan *p, struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	const struct weir_group_spec *gs = group_of(p, ps);
	const char *field = field_of(p, ps), *why;
	const struct weir_mark *mark =
	    plan_mark(&s->serial_mark, plan_mark(&s->mode_mark, &s->mark));
	char text[64], hint[160];

	if (!field)
		return;
	why = against(ps, text, sizeof(text));
	if (why) {
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "remove one of them, or write 'serial: none' at the stage",
		    "stage '%s' has both the serial key '%s' and %s", s->name, field, why);
		return;
	}
	if (gs->order == WEIR_ORDER_NEWEST)
		weir_errs_add(p->errs, mark, WEIR_EINVAL, "remove 'order', or 'serial'",
		    "stage '%s' keeps the order of events with equal '%s', but its group '%s' has "
		    "'order: newest'",
		    s->name, field, gs->name);
	ps->serial = plan_key(p, ps, field);
	if (!ps->serial && ps->type)
		weir_errs_add(p->errs, mark, WEIR_ENOENT,
		    plan_field_hint(p, ps->type, field,
			"`weir describe TYPE` shows the fields; or write 'serial: none' at the "
			"stage",
			hint, sizeof(hint)),
		    "stage '%s': events of type %s have no field '%s' for 'serial'", s->name,
		    ps->type->name, field);
	else if (!ps->serial)
		weir_errs_add(p->errs, mark, WEIR_ENOENT,
		    "use 'event' or 'class', or write 'serial: none' at the stage",
		    "stage '%s': the type of its events, and so the field '%s' for 'serial', is "
		    "unknown",
		    s->name, field);
}

void plan_group_serial(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	bool serial = false;

	for (int i = 0; i < p->n; i++)
		serial |= p->stages[i].ops && p->stages[i].group == g &&
			  field_of(p, &p->stages[i]) != NULL;
	if (serial && plan_core_threads(gs).max > PARTITIONS_MAX)
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "lower 'cores', or make two groups",
		    "group '%s' has a serial key and %lld cores; at most %d are allowed", gs->name,
		    (long long)plan_core_threads(gs).max, PARTITIONS_MAX);
}

/* Whether a serial stage of group `g` can be reached from stage `at`. */
static bool comes_back(const struct plan *p, int at, int g, bool *seen)
{
	const struct plan_stage *ps = &p->stages[at];
	bool back = false;

	if (seen[at])
		return false;
	seen[at] = true;
	for (int i = 0; i < ps->n_outlets && !back; i++) {
		int to = ps->outlets[i].to;
		if (to >= 0)
			back = (p->stages[to].serial && p->stages[to].group == g) ||
			       comes_back(p, to, g, seen);
	}
	return back;
}

/* Warn if events of the serial stage `ps` leave the serial stages of their group by `o` and may
 * come back. An inline stage runs in the thread of the serial stage, so the order goes on there. */
static void warn_of(const struct plan *p, const struct plan_stage *ps, const struct plan_outlet *o)
{
	bool seen[WEIR_STAGES_MAX] = {false};
	const struct plan_stage *to = o->to >= 0 ? &p->stages[o->to] : NULL;

	if (!to || (to->serial && to->group == ps->group) || to->spec->inlined ||
	    !comes_back(p, o->to, ps->group, seen))
		return;
	weir_log(WEIR_LOG_WARN,
	    "stage '%s': events with equal '%s' may overtake each other on the way over '%s', "
	    "which "
	    "has no serial key, back to the serial stages of group '%s'",
	    ps->spec->name, field_of(p, ps), to->spec->name, p->spec->groups[ps->group].name);
}

void plan_serial_warn(const struct plan *p)
{
	for (int i = 0; i < p->n; i++)
		for (int o = 0; p->stages[i].serial && o < p->stages[i].n_outlets; o++)
			warn_of(p, &p->stages[i], &p->stages[i].outlets[o]);
}
