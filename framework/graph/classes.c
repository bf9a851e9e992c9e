/* SPDX-License-Identifier: MIT */
/*
 * Classifies events. An event's class, and so its priority, depends on its fields. Classes refer to
 * the fields of one event type, that of the first source; events of other types have none of these
 * fields. The first matching class wins; an event that matches no class belongs to the last one.
 * The conditions are immutable after the build, so sources classify without a lock. The objectives
 * may change (operate/class_knobs.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "trace/trail.h"
#include "plan/plan.h"
#include "plan/spec_rows.h"

static int match_init(
    struct class_match *m, const struct weir_match_spec *spec, const struct plan *plan)
{
	m->type = plan->source_type;
	plan_field_ref(plan, m->type, spec->field, &m->field);
	m->n = strlen(spec->pattern);
	m->prefix = m->n > 0 && spec->pattern[m->n - 1] == '*';
	m->n -= m->prefix;
	m->pattern = strndup(spec->pattern, m->n);
	const char *arg = m->field.arg;
	m->arg = arg ? strdup(arg) : NULL;
	m->field.arg = m->arg;
	return m->pattern && (!arg || m->arg) ? 0 : WEIR_ENOMEM;
}

void graph_class_slo(struct weir_graph *g, int c)
{
	const struct weir_class_spec *cs = &g->spec->classes[c];

	atomic_store_explicit(&g->classes[c].slo_ns, cs->slo_ns, memory_order_relaxed);
	atomic_store_explicit(
	    &g->classes[c].slo_set, cs->slo_mark.file != NULL, memory_order_relaxed);
}

int graph_classes_bind(struct weir_graph *g, const struct plan *plan, struct weir_errs *errs)
{
	int n = g->spec->n_classes;

	g->n_classes = n > 0 ? n : 1;
	g->classes = calloc((size_t)g->n_classes, sizeof(*g->classes));
	g->slowest = slowest_new(g->n_classes);
	g->depot = depot_new();
	if (!g->classes || !g->slowest || !g->depot)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	g->classes[0].name = "default";
	atomic_init(&g->classes[0].slo_ns, SLO_DEFAULT_NS);
	weir_spec_shares(g->spec, g->class_priority, g->class_guarantee);
	for (int c = 0; c < n; c++) {
		const struct weir_class_spec *cs = &g->spec->classes[c];
		struct graph_class *gc = &g->classes[c];
		gc->name = cs->name;
		snprintf(gc->path, sizeof(gc->path), CLASSES_PREFIX "%s", cs->name);
		graph_class_slo(g, c);
		gc->match = calloc((size_t)cs->n_match + 1, sizeof(*gc->match));
		if (!gc->match)
			return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
		for (int m = 0; m < cs->n_match; m++, gc->n_match++)
			if (match_init(&gc->match[m], &cs->match[m], plan) != 0)
				return weir_errs_add(
				    errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	}
	return 0;
}

void graph_classes_free(struct weir_graph *g)
{
	slowest_free(g->slowest);
	depot_free(g->depot);
	for (int c = 0; g->classes && c < g->n_classes; c++) {
		struct graph_class *gc = &g->classes[c];
		for (int m = 0; gc->match && m < gc->n_match; m++) {
			free(gc->match[m].pattern);
			free(gc->match[m].arg);
		}
		free(gc->match);
	}
	free(g->classes);
	g->classes = NULL;
}

static bool matches(const struct graph_class *gc, const struct weir_event *ev)
{
	for (int i = 0; i < gc->n_match; i++) {
		const struct class_match *m = &gc->match[i];
		struct weir_slice v = {0};
		char digits[FIELD_NUMBER_BYTES];
		/* a field of events belongs to one type of them, one of payloads to any */
		if (field_found(&m->field) && (!m->field.field || ev->type == m->type))
			v = field_text(&m->field, ev, digits);
		if (!v.p || v.n < m->n || (!m->prefix && v.n != m->n) ||
		    memcmp(v.p, m->pattern, m->n) != 0)
			return false;
	}
	return true;
}

uint8_t weir_classify(const struct weir_stage *st, const struct weir_event *ev)
{
	const struct weir_graph *g = st->graph;
	int last = g->n_classes - 1;

	for (int c = 0; c < last; c++)
		if (matches(&g->classes[c], ev))
			return (uint8_t)c;
	return (uint8_t)last;
}

const char *weir_class_name(const struct weir_stage *st, int class_id)
{
	const struct weir_graph *g = st->graph;

	return class_id >= 0 && class_id < g->n_classes ? g->classes[class_id].name : "";
}

int64_t weir_class_slo_ns(const struct weir_stage *st, int class_id)
{
	const struct weir_graph *g = st->graph;

	if (class_id < 0 || class_id >= g->n_classes)
		return WEIR_NO_DEADLINE;
	return atomic_load_explicit(&g->classes[class_id].slo_ns, memory_order_relaxed);
}

const char *weir_stage_peer_name(const struct weir_stage *st, int id)
{
	const struct weir_graph *g = st->graph;

	return id >= 0 && id < g->n_stages ? g->stages[id]->name : "";
}
