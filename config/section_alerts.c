/* SPDX-License-Identifier: MIT */
/*
 * Binds `alerts:`, the settings of the built-in alerts (admin/metrics/alerts.h) for the whole
 * server and for single stages.
 *
 *   alerts:
 *     top_class_shed:     { above: 5, for: 30s }
 *     bottleneck_chronic: { for: 2m, stages: { disk: { enabled: false } } }
 *
 * This section is bound after the stages, since it refers to their names. If an entry of `stages:`
 * does not set a value, the value of its alert applies.
 */
#include "bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

#define WHERE_BYTES 200

/* Maximum of `for` and `linger`. A day is a guess. */
#define TIME_MAX_NS (24 * 3600e9)

/* Maximum of `above`. No server reaches this rate of shed events. */
#define ABOVE_MAX 1e9

#define ENABLED_ROW                                                                                \
	{                                                                                          \
		.name = "enabled", .type = WEIR_KNOB_BOOL,                                         \
		.offset = offsetof(struct weir_alert_rule, enabled), .def = "true",                \
		.help = "false: the alert is never raised"                                         \
	}
#define TIME_ROWS(for_, linger_)                                                                   \
	{.name = "for",                                                                            \
	    .type = WEIR_KNOB_DURATION,                                                            \
	    .offset = offsetof(struct weir_alert_rule, for_ns),                                    \
	    .def = for_,                                                                           \
	    .min = 0,                                                                              \
	    .max = TIME_MAX_NS,                                                                    \
	    .help = "how long the condition must hold before the alert is raised"},                \
	{                                                                                          \
		.name = "linger", .type = WEIR_KNOB_DURATION,                                      \
		.offset = offsetof(struct weir_alert_rule, linger_ns), .def = linger_, .min = 0,   \
		.max = TIME_MAX_NS,                                                                \
		.help = "how long the condition must be absent before the alert ends"              \
	}

static const struct weir_knob shed_knobs[] = {ENABLED_ROW,
    {.name = "above",
	.type = WEIR_KNOB_RATE,
	.offset = offsetof(struct weir_alert_rule, above_per_s),
	.def = "0",
	.min = 0,
	.max = ABOVE_MAX,
	.help = "the condition holds while more events of the highest class are shed per second "
		"than this"},
    TIME_ROWS("0s", "10s"), {.name = NULL}};
static const struct weir_knob chronic_knobs[] = {
    ENABLED_ROW, TIME_ROWS("30s", "0s"), {.name = NULL}};
static const struct weir_knob other_knobs[] = {ENABLED_ROW, TIME_ROWS("0s", "0s"), {.name = NULL}};
static const struct weir_knob burn_knobs[] = {ENABLED_ROW,
    {.name = "objective",
	.type = WEIR_KNOB_RATIO,
	.offset = offsetof(struct weir_alert_rule, objective),
	.def = "99%",
	.min = 0.5,
	.max = 0.99999,
	.help = "share of the requests of a class that must be answered within its slo"},
    TIME_ROWS("0s", "0s"), {.name = NULL}};
static const struct weir_knob refused_knobs[] = {ENABLED_ROW,
    {.name = "above",
	.type = WEIR_KNOB_RATE,
	.offset = offsetof(struct weir_alert_rule, above_per_s),
	.def = "1",
	.min = 0,
	.max = ABOVE_MAX,
	.help = "the condition holds while a source turns away more connections and requests per "
		"second than this, because of a limit of its own"},
    TIME_ROWS("10s", "10s"), {.name = NULL}};
static const struct weir_knob switch_knobs[] = {ENABLED_ROW, {.name = NULL}};

/* Indexed by enum weir_alert_kind. The condition of top_class_shed is a sum over all stages, so a
 * stage cannot set times for it. */
const struct weir_knob *const config_alert_knobs[WEIR_ALERTS] = {
    shed_knobs, other_knobs, chronic_knobs, other_knobs, burn_knobs, refused_knobs};
const struct weir_knob *const config_alert_stage_knobs[WEIR_ALERTS] = {
    switch_knobs, other_knobs, chronic_knobs, NULL, NULL, refused_knobs};

/** Rows of `alerts:` for `describe`. */
#define ALERT(kind, what)                                                                          \
	{                                                                                          \
		.name = what, .type = WEIR_KNOB_MAP, .fields = kind,                               \
		.help = "also 'stages: { NAME: { ... } }', for single stages"                      \
	}
const struct weir_knob config_alerts_knobs[] = {ALERT(shed_knobs, "top_class_shed"),
    ALERT(other_knobs, "stage_stuck"), ALERT(chronic_knobs, "bottleneck_chronic"),
    ALERT(refused_knobs, "source_refuses"),
    {.name = "slo_burn",
	.type = WEIR_KNOB_MAP,
	.fields = burn_knobs,
	.help = "raised while a class uses up the error budget of its slo too fast"},
    {.name = "history_file",
	.type = WEIR_KNOB_MAP,
	.fields = other_knobs,
	.help = "raised while the file of 'admin: { history: { file } }' cannot be used"},
    {.name = NULL}};

/** The alert being bound. */
struct alert {
	struct bind *bind;
	enum weir_alert_kind kind;
};

static void not_a_map(
    struct bind *bind, const struct weir_node *node, const char *where, const char *hint)
{
	weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, hint, "%s must be a map, not %s", where,
	    tree_kind(node));
}

/* Return whether a stage of this name exists. If not, report an error. */
static bool is_stage(struct bind *bind, const struct weir_node *name)
{
	const struct weir_spec *spec = bind->spec;
	const char **names = calloc((size_t)spec->n_stages + 1, sizeof(*names));
	char hint[160] = "";
	bool found = false;

	for (int i = 0; i < spec->n_stages; i++) {
		found = found || strcmp(spec->stages[i].name, name->text) == 0;
		if (names)
			names[i] = spec->stages[i].name;
	}
	if (names && !found)
		bind_hint(name->text, names, spec->n_stages, hint, sizeof(hint));
	free(names);
	if (found)
		return true;
	weir_errs_add(
	    bind->errs, &name->mark, WEIR_EINVAL, hint, "there is no stage '%.64s'", name->text);
	return false;
}

static int bind_stage(
    const struct alert *a, const struct weir_node *name, const struct weir_node *node)
{
	char where[WHERE_BYTES];

	if (!is_stage(a->bind, name))
		return 0;
	snprintf(where, sizeof(where), "alert '%s' of stage '%.64s'", weir_alert_names[a->kind],
	    name->text);
	if (node->kind != WEIR_NODE_MAP) {
		not_a_map(a->bind, node, where, "write { enabled: false }");
		return 0;
	}
	struct weir_alert_stage_spec *s =
	    weir_spec_add_alert_stage(a->bind->spec, a->kind, name->text);
	if (!s)
		return source_no_memory(a->bind->errs);
	int rc = weir_knobs_bind(
	    config_alert_stage_knobs[a->kind], node, &s->rule, where, a->bind->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}

static int bind_stages(
    const struct alert *a, const struct weir_node *name, const struct weir_node *node)
{
	int rc = 0;

	if (!config_alert_stage_knobs[a->kind]) {
		weir_errs_add(a->bind->errs, &name->mark, WEIR_EINVAL, "remove 'stages:'",
		    "'%s' applies to the whole server", weir_alert_names[a->kind]);
		return 0;
	}
	if (node->kind != WEIR_NODE_MAP) {
		not_a_map(a->bind, node, "'stages'", "write stages: { NAME: { enabled: false } }");
		return 0;
	}
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = bind_stage(a, node->name[i], node->item[i]);
	return rc;
}

/* Bind an alert. Its own keys are bound first, since their values are the defaults of the entries
 * of `stages:`. */
static int bind_alert(struct bind *bind, enum weir_alert_kind kind, const struct weir_node *node)
{
	const struct alert a = {bind, kind};
	char where[WHERE_BYTES];
	int rc = 0;

	snprintf(where, sizeof(where), "alert '%s'", weir_alert_names[kind]);
	if (node->kind != WEIR_NODE_MAP) {
		not_a_map(bind, node, where, "write { enabled: false } to switch the alert off");
		return 0;
	}
	for (int i = 0; i < node->n; i++)
		if (strcmp(node->name[i]->text, "stages") != 0)
			bind_one(bind, config_alert_knobs[kind], node->name[i], node->item[i],
			    &bind->spec->alerts.rule[kind], where);
	for (int i = 0; rc == 0 && i < node->n; i++)
		if (strcmp(node->name[i]->text, "stages") == 0)
			rc = bind_stages(&a, node->name[i], node->item[i]);
	return rc;
}

static int bind_named(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	char hint[160];

	for (int k = 0; k < WEIR_ALERTS; k++)
		if (strcmp(name->text, weir_alert_names[k]) == 0)
			return bind_alert(bind, (enum weir_alert_kind)k, node);
	if (strncmp(name->text, "x-", 2) == 0)
		return 0;
	bind_hint(name->text, weir_alert_names, WEIR_ALERTS, hint, sizeof(hint));
	weir_errs_add(
	    bind->errs, &name->mark, WEIR_EINVAL, hint, "there is no alert '%.64s'", name->text);
	return 0;
}

int section_alerts(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	static const struct bind_form form = {"alerts", "top_class_shed", "{ for: 30s }"};

	(void)name;
	return bind_each(bind, node, &form, bind_named);
}
