/* SPDX-License-Identifier: MIT */
/*
 * Classes: names, fields, reach, priorities, guarantees.
 *
 * The first class that matches takes an event, and what nothing matches is of the last; queues and
 * doors serve the list from its front. So a class behind one that takes all that it could match is a
 * mistake, as are priorities that contradict the list. A spec without a source is fed by its program,
 * which may give classes to events by itself: there no class is out of reach.
 */
#include "flow/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All guarantees together: at least half of a stage goes by priority (overload.md 3.3). */
#define GUARANTEES_MAX 0.5

static const struct weir_mark *mark_or(const struct weir_mark *own, const struct weir_mark *whole)
{
	return own->file ? own : whole;
}

static void check_fields(struct plan *p, const struct weir_class_spec *cs)
{
	const char *arg;

	for (int m = 0; m < cs->n_match && p->source_type; m++)
		if (!plan_field(p->source_type, cs->match[m].field, &arg))
			weir_errs_add(p->errs, &cs->mark, WEIR_ENOENT,
			    "`weir describe` of the source lists the fields",
			    "class '%s' matches '%s', which %s does not have", cs->name,
			    cs->match[m].field, p->source_type->name);
}

/* ---- reach ---- */

static bool has_source(const struct plan *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE)
			return true;
	return false;
}

/* Does `wide` match all that `narrow` does? Both are exact, or a prefix and '*'. */
static bool covers(const char *wide, const char *narrow)
{
	size_t n = strlen(wide);

	if (n > 0 && wide[n - 1] == '*')
		return strncmp(wide, narrow, n - 1) == 0;
	return strcmp(wide, narrow) == 0;
}

/* Does `earlier` match every event that `later` matches? Each of its conditions must follow from one
 * of the later's. */
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
				     : "a class without 'match' comes last",
		    "class '%s' can match nothing: '%s', which stands before it, takes %s",
		    class->name, earlier->name,
		    earlier->n_match ? "all that it could" : "everything");
		return;
	}
}

/* ---- priorities and guarantees ---- */

static void check_priority(struct plan *p, const int *priority, int c)
{
	const struct weir_class_spec *cs = &p->spec->classes[c];
	const struct weir_mark *mark = mark_or(&cs->priority_mark, &cs->mark);

	if (priority[c] >= WEIR_CLASSES_MAX)
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "begin with lower numbers, or give some classes the same",
		    "class '%s' has priority %d, the lowest there is is %d", cs->name, priority[c],
		    WEIR_CLASSES_MAX - 1);
	if (c > 0 && priority[c] < priority[c - 1])
		weir_errs_add(p->errs, mark, WEIR_EINVAL,
		    "the first class is served first; the numbers may not fall",
		    "class '%s' has priority %d, but stands behind '%s' with %d", cs->name,
		    priority[c], p->spec->classes[c - 1].name, priority[c - 1]);
}

/* At the class with which it becomes too much. */
static void check_guarantees(struct plan *p, const double *guarantee, int n)
{
	const struct weir_class_spec *over = NULL;
	double sum = 0;

	for (int c = 0; c < n; c++) {
		sum += guarantee[c];
		if (!over && sum > GUARANTEES_MAX + 1e-9) /* 1e-9: sums of shares in binary */
			over = &p->spec->classes[c];
	}
	if (over)
		weir_errs_add(p->errs, mark_or(&over->guarantee_mark, &over->mark), WEIR_EINVAL,
		    "a class that is not first and says nothing is guaranteed 2%",
		    "the classes are guaranteed %.4g%% of each stage in all, at most 50%% can be",
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
		    "there are %d classes, at most %d are possible", spec->n_classes,
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
