/* SPDX-License-Identifier: MIT */
/*
 * Sets knobs of the classes of a running graph: their objectives.
 *
 * The objective of a class has two uses. Events get deadlines by it, and answers are compared with
 * it (graph_class_slo). Stages without an objective of their own have the shortest one of all
 * classes (weir_spec_slo_ns), so these stages and the core groups are updated, too. A value is
 * checked with the whole spec, as by `weir check`. Under graph->lock.
 */
#include <string.h>

#include "graph/graph.h"
#include "graph/group.h"
#include "operate/changes.h"
#include "plan/spec_rows.h"
#include "sched/pool.h"

/* Stands for the position in the file of an objective that an operator or a reload has set. */
static const char set_live[] = "(set)";

struct graph_class *graph_class_find(struct weir_graph *g, const char *path, char *why, size_t size)
{
	const size_t skip = sizeof(CLASSES_PREFIX) - 1;
	const char *names[WEIR_CLASSES_MAX] = {0};
	int n = g->spec->n_classes;

	for (int c = 0; c < n; c++) {
		if (strcmp(g->classes[c].path, path) == 0)
			return &g->classes[c];
		names[c] = g->classes[c].name;
	}
	const char *near = weir_nearest(path + skip, names, n);
	graph_say(why, size, 0, "there is no class '%s'%s%s%s%s", path + skip,
	    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
	    n == 0 ? ": the configuration has no classes" : "");
	return NULL;
}

struct weir_class_spec *graph_class_spec(const struct owner *of)
{
	return &of->graph->spec->classes[of->class - of->graph->classes];
}

int graph_class_knob_live(const struct owner *of, const char *knob, char *why, size_t size)
{
	const struct weir_knob *row = weir_knob_find(weir_class_knobs, knob);

	if (!row)
		return graph_no_knob(weir_class_knobs, "class", of->class->name, knob, why, size);
	if (row->flags & WEIR_KNOB_LIVE)
		return 0;
	return graph_say(why, size, WEIR_EINVAL,
	    "'%s' of class '%s' cannot change while the server runs", knob, of->class->name);
}

/* Record whether the class has an objective of its own, which alerts watch. The default is one only
 * if the file has it. */
static void mark_objective(struct weir_class_spec *cs)
{
	if (cs->slo_ns != SLO_DEFAULT_NS && !cs->slo_mark.file)
		cs->slo_mark.file = set_live;
	else if (cs->slo_ns == SLO_DEFAULT_NS && cs->slo_mark.file == set_live)
		cs->slo_mark.file = NULL;
}

static int check(const struct owner *of, const struct weir_class_spec *next, char *why, size_t size)
{
	const struct weir_spec *now = of->graph->spec;
	struct weir_class_spec classes[WEIR_CLASSES_MAX];
	struct weir_spec wanted = *now;

	memcpy(classes, now->classes, (size_t)now->n_classes * sizeof(*classes));
	classes[of->class - of->graph->classes] = *next;
	wanted.classes = classes;
	return graph_check_spec(now, &wanted, why, size);
}

/* Let the objective of the class take effect, also for the stages that use it. */
static void apply(const struct owner *of)
{
	struct weir_graph *g = of->graph;

	graph_class_slo(g, (int)(of->class - g->classes));
	for (int i = 0; i < g->n_stages; i++)
		graph_stage_slo(g->stages[i]);
	for (int i = 0; i < g->n_pools; i++)
		if (g->pools[i]->cores)
			graph_group_renew(g, g->pools[i]);
}

int graph_class_knob_turn(
    const struct owner *of, const char *knob, const char *value, char *why, size_t size)
{
	struct weir_class_spec next = *graph_class_spec(of);
	const struct weir_knob *row = weir_knob_find(weir_class_knobs, knob);
	int rc = graph_knob_parse(row, value, &next, why, size);

	mark_objective(&next);
	if (rc == 0)
		rc = check(of, &next, why, size);
	if (rc != 0)
		return rc;
	*graph_class_spec(of) = next;
	apply(of);
	return 0;
}

void graph_classes_renew(struct weir_graph *g, const struct weir_spec *wanted)
{
	for (int c = 0; c < g->spec->n_classes && c < wanted->n_classes; c++) {
		struct weir_class_spec *cs = &g->spec->classes[c];
		cs->slo_mark.file = wanted->classes[c].slo_mark.file ? set_live : NULL;
		mark_objective(cs);
		graph_class_slo(g, c);
	}
}
