/* SPDX-License-Identifier: MIT */
/* The alert rules of `alerts:`, built-in or from the file, for the whole server and for single
 * stages. */
#include <weir/spec.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Time without shed events of the highest class after which the alert top_class_shed ends. It
 * prevents flickering when events are shed in bursts. 10 s is a guess. */
#define SHED_LINGER_NS (10 * NS_PER_S)

/* Duration after which a bottleneck is reported. 30 s is a guess: by then a burst is over, and a
 * pool that may grow has grown (admin/metrics/bottleneck.h). */
#define CHRONIC_NS (30 * NS_PER_S)

/* Share of the requests that must meet the objective of their class. 99 % is a guess. */
#define OBJECTIVE 0.99

/* A source that turns away more than one connection or request a second for 10 s, and the same time
 * without. Guesses. */
#define REFUSED_PER_S 1
#define REFUSED_NS    (10 * NS_PER_S)

const char *const weir_alert_names[WEIR_ALERTS] = {"top_class_shed", "stage_stuck",
    "bottleneck_chronic", "history_file", "slo_burn", "source_refuses"};

struct weir_alerts_spec weir_alerts_default(void)
{
	struct weir_alerts_spec a = {.n_stages = 0};

	for (int i = 0; i < WEIR_ALERTS; i++)
		a.rule[i].enabled = true;
	a.rule[WEIR_ALERT_TOP_CLASS_SHED].linger_ns = SHED_LINGER_NS;
	a.rule[WEIR_ALERT_BOTTLENECK_CHRONIC].for_ns = CHRONIC_NS;
	a.rule[WEIR_ALERT_SLO_BURN].objective = OBJECTIVE;
	a.rule[WEIR_ALERT_SOURCE_REFUSES].above_per_s = REFUSED_PER_S;
	a.rule[WEIR_ALERT_SOURCE_REFUSES].for_ns = REFUSED_NS;
	a.rule[WEIR_ALERT_SOURCE_REFUSES].linger_ns = REFUSED_NS;
	return a;
}

int weir_alerts_copy(const struct weir_alerts_spec *from, struct weir_alerts_spec *to)
{
	*to = *from;
	to->n_stages = 0;
	to->stages = calloc((size_t)from->n_stages + 1, sizeof(*to->stages));
	for (int i = 0; to->stages && i < from->n_stages; i++) {
		to->stages[i] = from->stages[i];
		to->stages[i].stage = strdup(from->stages[i].stage);
		if (!to->stages[i].stage)
			break;
		to->n_stages++;
	}
	if (to->n_stages == from->n_stages && to->stages)
		return 0;
	weir_alerts_free(to);
	return WEIR_ENOMEM;
}

void weir_alerts_free(struct weir_alerts_spec *a)
{
	for (int i = 0; i < a->n_stages; i++)
		free(a->stages[i].stage);
	free(a->stages);
	*a = (struct weir_alerts_spec){.n_stages = 0};
}

const struct weir_alert_rule *weir_alert_rule(
    const struct weir_alerts_spec *a, enum weir_alert_kind kind, const char *stage)
{
	for (int i = 0; i < a->n_stages; i++)
		if (a->stages[i].kind == (int)kind && strcmp(a->stages[i].stage, stage) == 0)
			return &a->stages[i].rule;
	return &a->rule[kind];
}

struct weir_alert_stage_spec *weir_spec_add_alert_stage(
    struct weir_spec *spec, enum weir_alert_kind kind, const char *stage)
{
	struct weir_alerts_spec *a = &spec->alerts;
	struct weir_alert_stage_spec *more =
	    realloc(a->stages, ((size_t)a->n_stages + 1) * sizeof(*more));
	char *name = strdup(stage);

	if (more)
		a->stages = more;
	if (!more || !name) {
		free(name);
		return NULL;
	}
	struct weir_alert_stage_spec *s = &a->stages[a->n_stages++];
	*s =
	    (struct weir_alert_stage_spec){.stage = name, .kind = (int)kind, .rule = a->rule[kind]};
	return s;
}
