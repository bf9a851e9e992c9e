/* SPDX-License-Identifier: MIT */
/*
 * Checks classes: their names, fields, reachability, priorities and guarantees.
 *
 * An event belongs to the first class that matches it, or to the last class if none does. Queues
 * and admission serve classes in the order of the list. So it is an error if an earlier class takes
 * all events that a later class could match, or if priorities contradict the order.
 *
 * If a spec has no source, the program that embeds weir offers the events and may also assign their
 * classes. So no class of such a spec counts as unreachable.
 */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest sum of all guarantees, so that at least half of a stage is assigned by priority. */
#define GUARANTEES_MAX 0.5

static void check_pattern(struct plan *p, const struct weir_class_spec *cs,
    const struct weir_match_spec *m, const struct weir_field *field)
{
	const struct weir_event_type *type = p->source_type;
	size_t n = strlen(m->pattern);
	bool prefix = n > 0 && m->pattern[n - 1] == '*';
	char hint[sizeof(((struct weir_err *)0)->hint)] = "";

	if (type->may_match &&
	    !type->may_match(field, m->pattern, n - prefix, prefix, hint, sizeof(hint)))
		weir_errs_add(p->errs, &cs->mark, WEIR_EINVAL, hint,
		    "class '%s' can match nothing: no %s has the %s '%.60s'", cs->name, type->name,
		    m->field, m->pattern);
}

/* A source chooses the class when it has made an event, so it must also have made the payload. */
static void check_payload(struct plan *p, const struct weir_class_spec *cs,
    const struct weir_match_spec *m, const struct field_ref *ref)
{
	size_t digits = strspn(m->pattern, "0123456789");
	bool number = !m->pattern[digits] || strcmp(m->pattern + digits, "*") == 0;

	if (!plan_source_gives(p, ref->payload))
		weir_errs_add(p->errs, &cs->mark, WEIR_ENOENT,
		    "a class is chosen at the source, so only payloads that it gives can be "
		    "matched",
		    "class '%s' matches '%s', but no source gives %s", cs->name, m->field,
		    ref->payload->name);
	else if (ref->of_payload->number && !number)
		weir_errs_add(p->errs, &cs->mark, WEIR_EINVAL, "use digits, or digits and '*'",
		    "class '%s' can match nothing: '%s' is a number, and '%.60s' is none", cs->name,
		    m->field, m->pattern);
}

static void check_match(struct plan *p, const struct weir_class_spec *cs,
    const struct weir_match_spec *m, const struct field_ref *ref)
{
	if (ref->field)
		check_pattern(p, cs, m, ref->field);
	else
		check_payload(p, cs, m, ref);
}

static void check_fields(struct plan *p, const struct weir_class_spec *cs)
{
	struct field_ref ref;
	char hint[160];

	for (int m = 0; m < cs->n_match && p->source_type; m++) {
		if (plan_field_ref(p, p->source_type, cs->match[m].field, &ref))
			check_match(p, cs, &cs->match[m], &ref);
		else
			weir_errs_add(p->errs,
			    cs->match[m].mark.file ? &cs->match[m].mark : &cs->mark, WEIR_ENOENT,
			    plan_field_hint(p, p->source_type, cs->match[m].field,
				"`weir describe` of the source lists the fields", hint,
				sizeof(hint)),
			    "class '%s' matches '%s', which %s does not have", cs->name,
			    cs->match[m].field, p->source_type->name);
	}
}

/* ---- reachability ---- */

static bool has_source(const struct plan *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE)
			return true;
	return false;
}

/* Whether the pattern `wide` matches everything that the pattern `narrow` matches. Each is an exact
 * text, or a prefix followed by '*'. */
static bool covers(const char *wide, const char *narrow)
{
	size_t n = strlen(wide);

	if (n > 0 && wide[n - 1] == '*')
		return strncmp(wide, narrow, n - 1) == 0;
	return strcmp(wide, narrow) == 0;
}

/* Whether `earlier` matches every event that `later` matches: each condition of `earlier` must
 * follow from a condition of `later`. */
static bool takes_all_of(const struct weir_class_spec *earlier, const struct weir_class_spec *later)
{
	for (int i = 0; i < earlier->n_match; i++) {
		const struct weir_match_spec *e = &earlier->match[i];
		bool implied = false;
		for (int k = 0; k < later->n_match && !implied; k++)
			implied = strcmp(later->match[k].field, e->field) == 0 &&
				  covers(e->pattern, later->match[k].pattern);
		if (!implied)
			return false;
	}
	return true;
}

static void check_reach(struct plan *p, int c)
{
	const struct weir_class_spec *class = &p->spec->classes[c];

	for (int e = 0; e < c; e++) {
		const struct weir_class_spec *earlier = &p->spec->classes[e];
		if (!takes_all_of(earlier, class))
			continue;
		weir_errs_add(p->errs, &class->mark, WEIR_EINVAL,
		    earlier->n_match ? "put the narrower class first"
				     : "put the class without 'match' last",
		    "class '%s' can match nothing: '%s' before it takes %s", class->name,
		    earlier->name, earlier->n_match ? "everything it could match" : "everything");
		return;
	}
}

/* ---- priorities and guarantees ---- */

static void check_priority(struct plan *p, const int *priority, int c)
{
	const struct weir_class_spec *cs = &p->spec->classes[c];
	const struct weir_mark *mark = plan_mark(&cs->priority_mark, &cs->mark);

	if (priority[c] >= WEIR_CLASSES_MAX)
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "start with lower numbers, or give some classes the same priority",
		    "class '%s' has priority %d, but at most %d is allowed", cs->name, priority[c],
		    WEIR_CLASSES_MAX - 1);
	if (c > 0 && priority[c] < priority[c - 1])
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "list the classes by ascending number; the first is served first",
		    "class '%s' has priority %d, but comes after '%s' with %d", cs->name,
		    priority[c], p->spec->classes[c - 1].name, priority[c - 1]);
}

/* Check the sum of the guarantees. The error is reported for the class at which the sum becomes too
 * large. */
static void check_guarantees(struct plan *p, const double *guarantee, int n)
{
	const struct weir_class_spec *over = NULL;
	double sum = 0;

	for (int c = 0; c < n; c++) {
		sum += guarantee[c];
		if (!over && sum > GUARANTEES_MAX + 1e-9) /* 1e-9 allows for rounding */
			over = &p->spec->classes[c];
	}
	if (over)
		weir_errs_add(p->errs, plan_mark(&over->guarantee_mark, &over->mark), WEIR_EINVAL,
		    "lower some; a class below the highest priority is guaranteed 2% by default",
		    "the classes are guaranteed %.4g%% of each stage in total, at most 50%% is "
		    "allowed",
		    sum * 100);
}

void plan_classes(struct plan *p)
{
	const struct weir_spec *spec = p->spec;
	double guarantee[WEIR_CLASSES_MAX] = {0};
	int priority[WEIR_CLASSES_MAX] = {0};
	int n = spec->n_classes < WEIR_CLASSES_MAX ? spec->n_classes : WEIR_CLASSES_MAX;
	bool reached = has_source(p);

	if (spec->n_classes > WEIR_CLASSES_MAX)
		weir_errs_add(p->errs, &spec->classes[WEIR_CLASSES_MAX].mark, WEIR_EINVAL, NULL,
		    "there are %d classes, at most %d are allowed", spec->n_classes,
		    WEIR_CLASSES_MAX);
	weir_spec_shares(spec, priority, guarantee);
	for (int c = 0; c < n; c++) {
		plan_name(p, "class", spec->classes[c].name, &spec->classes[c].mark);
		check_fields(p, &spec->classes[c]);
		check_priority(p, priority, c);
		if (reached)
			check_reach(p, c);
	}
	check_guarantees(p, guarantee, n);
}
