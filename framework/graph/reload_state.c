/* SPDX-License-Identifier: MIT */
/*
 * Adds the totals of the previous graph to those of the new one; see reload_state.h. The two graphs
 * share one reference-counted object: the new graph has it as `inherited`, the old one as
 * `bequest`. Stages, outlets and metrics are matched by name once and from then on identified by
 * number, since a graph frees its names.
 */
#include "graph/reload_state.h"

#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

/** For one stage of the new graph: the indexes of its counterpart in the old graph, and of the
 *  counterpart's outlets and metrics; -1 if there is no match. */
struct kin {
	int stage;
	int *outlet; /* [the new stage's n_outlets] */
	int metric[WEIR_METRICS_MAX];
};

struct inheritance {
	/* Taken before all locks that a view takes. In a chain of several graphs, the newest
	 * graph's lock is taken first. */
	struct lock lock;
	int refs WEIR_GUARDED_BY(lock);
	/* NULL once the old graph is about to be freed */
	struct weir_graph *from WEIR_GUARDED_BY(lock);
	/* The final view of the old graph, taken when `from` becomes NULL, or NULL if out of
	 * memory. The names in it are dangling pointers. */
	struct weir_graph_view *last WEIR_GUARDED_BY(lock);
	/* Members from here on are constant after reload_state_begin. */
	int n;
	struct kin *kin; /* [n], by stage id of the new graph */
	int class_id[WEIR_CLASSES_MAX];
};

/* ---- matching ---- */

static int class_of(const struct weir_graph *g, const char *name)
{
	for (int c = 0; c < g->n_classes; c++)
		if (strcmp(g->classes[c].name, name) == 0)
			return c;
	return -1;
}

static int outlet_of(const struct weir_stage *st, const char *name)
{
	for (int o = 0; o < st->n_outlets; o++)
		if (strcmp(st->outlets[o].name, name) == 0)
			return o;
	return -1;
}

/* Return the index in `rows` of the counter called `name`, or -1. */
static int metric_of(const struct weir_metric *rows, const char *name)
{
	for (int m = 0; rows && m < WEIR_METRICS_MAX && rows[m].name; m++)
		if (weir_metric_counts(&rows[m]) && strcmp(rows[m].name, name) == 0)
			return m;
	return -1;
}

/* Find the counterpart of `st` in `old`. Stages match by name alone, even if their types differ,
 * because Prometheus identifies them by name. */
static int find_kin(struct kin *kin, const struct weir_stage *st, const struct weir_graph *old)
{
	const struct weir_stage *was = weir_graph_stage(old, st->name);
	const struct weir_metric *rows = st->ops->metrics;

	kin->stage = was ? was->id : -1;
	kin->outlet = calloc((size_t)st->n_outlets + 1, sizeof(*kin->outlet));
	if (!kin->outlet)
		return WEIR_ENOMEM;
	for (int o = 0; o < st->n_outlets; o++)
		kin->outlet[o] = was ? outlet_of(was, st->outlets[o].name) : -1;
	for (int m = 0; m < WEIR_METRICS_MAX; m++)
		kin->metric[m] = -1;
	for (int m = 0; was && rows && m < WEIR_METRICS_MAX && rows[m].name; m++)
		if (weir_metric_counts(&rows[m]))
			kin->metric[m] = metric_of(was->ops->metrics, rows[m].name);
	return 0;
}

/* ---- lifetime ---- */

static void inheritance_free(struct inheritance *i)
{
	for (int s = 0; i->kin && s < i->n; s++)
		free(i->kin[s].outlet);
	free(i->kin);
	weir_graph_view_free(i->last);
	lock_fini(&i->lock);
	free(i);
}

static void unref(struct inheritance *i)
{
	lock_take(&i->lock);
	bool last = --i->refs == 0;
	lock_release(&i->lock);
	if (last)
		inheritance_free(i);
}

int reload_state_begin(struct weir_graph *g, struct weir_graph *old)
{
	struct inheritance *i = calloc(1, sizeof(*i));
	int rc = 0;

	if (!i)
		return WEIR_ENOMEM;
	lock_init(&i->lock);
	i->refs = 2;
	i->from = old;
	i->n = g->n_stages;
	i->kin = calloc((size_t)i->n + 1, sizeof(*i->kin));
	for (int c = 0; c < g->n_classes; c++)
		i->class_id[c] = class_of(old, g->classes[c].name);
	for (int s = 0; i->kin && rc == 0 && s < i->n; s++)
		rc = find_kin(&i->kin[s], g->stages[s], old);
	if (!i->kin || rc != 0) {
		inheritance_free(i);
		return WEIR_ENOMEM;
	}
	g->inherited = i;
	old->bequest = i;
	return 0;
}

void reload_state_end(struct weir_graph *old)
{
	struct inheritance *i = old->bequest;
	bool lost = false;

	if (!i)
		return;
	lock_take(&i->lock);
	if (i->refs > 1)
		lost = weir_graph_view(old, &i->last) != 0;
	i->from = NULL;
	lock_release(&i->lock);
	if (lost)
		weir_log(WEIR_LOG_ERROR, "reload: memory ran out, so totals restart at 0");
	old->bequest = NULL;
	unref(i);
}

void reload_state_drop(struct weir_graph *g)
{
	struct inheritance *i = g->inherited;

	if (!i)
		return;
	g->inherited = NULL;
	unref(i);
}

/* ---- adding ---- */

static void add_class(struct weir_class_view *v, const struct weir_class_view *was)
{
	v->offered += was->offered;
	v->admitted += was->admitted;
	v->completed += was->completed;
	v->failed += was->failed;
	v->spawned += was->spawned;
	v->departed += was->departed;
	for (int r = 0; r < WEIR_SHED_REASONS; r++)
		v->shed[r] += was->shed[r];
	v->shadow_shed += was->shadow_shed;
	v->refused_ahead += was->refused_ahead;
	weir_hist_add(&v->wait, &was->wait);
	weir_hist_add(&v->service, &was->service);
}

static void add_stage(const struct inheritance *i, const struct kin *kin, int n_classes,
    struct weir_stage_view *v, const struct weir_stage_view *was)
{
	v->admission_nonsense += was->admission_nonsense;
	v->thread_failures += was->thread_failures;
	v->thread_deaths += was->thread_deaths;
	v->busy_ns += was->busy_ns;
	for (int t = 0; t < WEIR_TIMES; t++)
		v->time_ns[t] += was->time_ns[t];
	v->batches += was->batches;
	v->batch_events += was->batch_events;
	for (int b = 0; b < WEIR_COHORT_BUCKETS; b++)
		v->cohorts[b] += was->cohorts[b];
	v->wakeups += was->wakeups;
	v->unhandled += was->unhandled;
	for (int r = 0; r < WEIR_PAYLOAD_REFUSALS; r++)
		v->payload_refused[r] += was->payload_refused[r];
	v->refusals += was->refusals;
	v->spawned += was->spawned;
	v->joined += was->joined;
	v->orphaned += was->orphaned;
	v->cancelled += was->cancelled;
	v->children_refused += was->children_refused;
	if (v->stuck_call.id > 0)
		v->stuck_call.id += was->stuck;
	else
		v->stuck_call = was->stuck_call;
	v->stuck += was->stuck;
	for (int m = 0; m < v->n_metrics; m++)
		if (kin->metric[m] >= 0)
			v->metric[m] += was->metric[kin->metric[m]];
	for (int o = 0; o < v->n_links; o++)
		if (kin->outlet[o] >= 0)
			v->links[o].events_total += was->links[kin->outlet[o]].events_total;
	for (int c = 0; v->answers && was->answers && c < n_classes; c++)
		for (int o = 0; i->class_id[c] >= 0 && o < WEIR_OUTCOMES; o++)
			weir_hist_add(&v->answers[c].by[o], &was->answers[i->class_id[c]].by[o]);
	for (int c = 0; c < n_classes; c++)
		if (i->class_id[c] >= 0)
			add_class(&v->class_view[c], &was->class_view[i->class_id[c]]);
}

static void add_view(
    const struct inheritance *i, struct weir_graph_view *v, const struct weir_graph_view *was)
{
	for (int s = 0; s < v->n_stages; s++)
		if (i->kin[s].stage >= 0)
			add_stage(i, &i->kin[s], v->n_classes, &v->stages[s],
			    &was->stages[i->kin[s].stage]);
	v->collect.collected += was->collect.collected;
	v->collect.dropped += was->collect.dropped;
	v->collect.sent += was->collect.sent;
	v->collect.failed += was->collect.failed;
	/* The new graph's journal began as a copy of the old one, which may have grown since. */
	if (was->decided_total > v->decided_total)
		v->decided_total = was->decided_total;
}

int reload_state_add(struct weir_graph *g, struct weir_graph_view *v)
{
	struct inheritance *i = g->inherited;
	struct weir_graph_view *was = NULL;
	int rc = 0;

	if (!i)
		return 0;
	lock_take(&i->lock);
	if (i->from)
		rc = weir_graph_view(i->from, &was);
	if (rc == 0 && (was || i->last))
		add_view(i, v, was ? was : i->last);
	lock_release(&i->lock);
	weir_graph_view_free(was);
	return rc;
}
