/* SPDX-License-Identifier: MIT */
/*
 * The list of overrides of a graph: finding, creating, dropping and reading them. overrides.c
 * changes them for operators.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "operate/changes.h"

void override_values_free(struct override_values *l)
{
	free(l->permanent);
	free(l->temporary);
	*l = (struct override_values){0};
}

int override_values_copy(struct override_values *to, const struct override_values *from)
{
	*to = *from;
	to->permanent = from->permanent ? strdup(from->permanent) : NULL;
	to->temporary = from->temporary ? strdup(from->temporary) : NULL;
	if ((!from->permanent || to->permanent) && (!from->temporary || to->temporary))
		return 0;
	override_values_free(to);
	return WEIR_ENOMEM;
}

const char *graph_override_value(const struct override *o, const struct override_values *l)
{
	return l->temporary ? l->temporary : l->permanent ? l->permanent : o->configured;
}

struct override *graph_override(
    const struct weir_graph *g, const struct owner *of, const char *knob)
{
	for (struct override *o = g->overrides; o; o = o->next)
		if (o->of.stage == of->stage && o->of.group == of->group &&
		    o->of.class == of->class && strcmp(o->knob, knob) == 0)
			return o;
	return NULL;
}

char *graph_knob_text(const struct owner *of, const char *knob)
{
	char *text = malloc(WEIR_VALUE_MAX);

	if (text && graph_knob_print(of, knob, text, WEIR_VALUE_MAX) != 0) {
		free(text);
		text = NULL;
	}
	return text;
}

void graph_override_drop(struct weir_graph *g, struct override *o)
{
	struct override **at = &g->overrides;

	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
	override_values_free(&o->values);
	free(o->knob);
	free(o->configured);
	free(o);
}

struct override *graph_override_need(
    struct weir_graph *g, const struct owner *of, const char *knob, bool *missing)
{
	struct override *o = graph_override(g, of, knob);
	char probe[2];

	*missing = graph_knob_print(of, knob, probe, sizeof(probe)) != 0;
	if (o || *missing)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->of = *of;
	o->knob = strdup(knob);
	o->configured = graph_knob_text(of, knob);
	o->next = g->overrides;
	g->overrides = o;
	if (o->knob && o->configured)
		return o;
	graph_override_drop(g, o);
	return NULL;
}

void graph_override_settle(struct override *o)
{
	if (!o->values.permanent || strcmp(o->values.permanent, o->configured) != 0)
		return;
	free(o->values.permanent);
	o->values.permanent = NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool graph_override_same(const struct weir_graph *g, const struct before *before)
{
	static const struct override_values none;
	const struct override *o = graph_override(g, &before->of, before->knob);
	const struct override_values *now = o ? &o->values : &none, *then = &before->values;

	return same_text(now->permanent, then->permanent) &&
	       same_text(now->temporary, then->temporary);
}

int weir_graph_override(
    const struct weir_graph *cg, const char *stage, const char *knob, struct weir_override *out)
{
	struct weir_graph *g = cg->stages[0]->graph; /* drops const, since reading takes a lock */
	struct owner of;
	char why[256];

	*out = (struct weir_override){0};
	if (!graph_find_owner(g, stage, &of, why, sizeof(why)))
		return WEIR_ENOENT;
	lock_take(&g->lock);
	const struct override *o = graph_override(g, &of, knob);
	int rc = 0;
	out->fixed = graph_knob_live(&of, knob, why, sizeof(why)) != 0;
	if (o) {
		out->stuck = o->values.temporary && o->values.stuck;
		out->overridden = true;
		snprintf(out->configured, sizeof(out->configured), "%s", o->configured);
		snprintf(out->override, sizeof(out->override), "%s",
		    graph_override_value(o, &o->values));
		out->has_permanent = o->values.temporary && o->values.permanent;
		snprintf(out->permanent, sizeof(out->permanent), "%s",
		    out->has_permanent ? o->values.permanent : "");
		if (o->values.temporary)
			out->expires_wall_ns =
			    clock_wall_ns() + o->values.until_ns - clock_now_ns();
	} else {
		rc = graph_knob_print(&of, knob, out->configured, sizeof(out->configured));
	}
	lock_release(&g->lock);
	return rc;
}
