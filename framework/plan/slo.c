/* SPDX-License-Identifier: MIT */
/*
 * Reports objectives that no event can meet, because the configured service time of a stage is
 * longer.
 *
 * Only explicit objectives can be errors. A stage that takes a second per event and has no `slo` is
 * allowed, since its policy admits waits of at least two service times. The objective of a class
 * covers all stages on the route of an event. The check does not know which classes pass through a
 * stage. So it compares only the longest objective of all classes, and only if every class has an
 * explicit one.
 */
#include "plan/plan.h"

#include <stdlib.h>

/* Print a duration as a user would write it. */
static const char *in_words(int64_t ns, char *buf, size_t size)
{
	const struct weir_knob row = {.name = "time", .type = WEIR_KNOB_DURATION};

	weir_knob_print(&row, &ns, buf, size);
	return buf;
}

/* Return the class with the longest objective, or NULL if any class has no explicit objective. */
static const struct weir_class_spec *longest_class(const struct weir_spec *spec)
{
	const struct weir_class_spec *longest = NULL;

	for (int c = 0; c < spec->n_classes; c++) {
		const struct weir_class_spec *cs = &spec->classes[c];
		if (!cs->slo_mark.file)
			return NULL;
		if (!longest || cs->slo_ns > longest->slo_ns)
			longest = cs;
	}
	return longest;
}

static void check_stage(
    struct plan *p, const struct plan_stage *ps, const struct weir_class_spec *longest)
{
	const struct weir_stage_spec *s = ps->spec;
	char takes[40], slo[40];

	in_words(ps->service_ns, takes, sizeof(takes));
	if (s->slo_ns >= 0 && s->slo_ns < ps->service_ns)
		weir_errs_add(p->errs, s->slo_mark.file ? &s->slo_mark : &s->mark, WEIR_EINVAL,
		    "raise the 'slo' of the stage, or lower its service time",
		    "the objective of stage '%s' is %s, but one event alone takes %s there",
		    s->name, in_words(s->slo_ns, slo, sizeof(slo)), takes);
	if (longest && longest->slo_ns < ps->service_ns)
		weir_errs_add(p->errs, &longest->slo_mark, WEIR_EINVAL,
		    "raise the 'slo' of a class, or lower the stage's service time",
		    "the longest objective is %s, of class '%s', but one event alone takes %s at "
		    "stage '%s'",
		    in_words(longest->slo_ns, slo, sizeof(slo)), longest->name, takes, s->name);
}

void plan_slo(struct plan *p)
{
	const struct weir_class_spec *longest = longest_class(p->spec);

	for (int i = 0; i < p->n; i++)
		if (p->stages[i].service_ns > 0)
			check_stage(p, &p->stages[i], longest);
}
