/* SPDX-License-Identifier: MIT */
/*
 * Sets knobs of a running graph by name and text, with the error messages of `weir check`.
 *
 * A framework knob is parsed into a copy of the stage's spec and checked there; a `with.` knob is
 * parsed into a copy of the configuration block. Only a valid value takes effect: bounds go to the
 * pool, limits and admission parameters to the sink, a new configuration block to the threads.
 * graph->lock orders writers; operate/overrides.c records the previous values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob_in.h"
#include "base/number_text.h"
#include "base/task.h"
#include "graph/graph.h"
#include "graph/group.h"
#include "operate/changes.h"
#include "plan/plan.h"
#include "sched/pool.h"

/* Maximum number of knobs with which a misspelt name is compared. */
#define PATHS_MAX 64

#define MS_TEXT(ns) number_text(NUMBER_ROOM, (double)(ns) / 1e6, 4)

static int say(char *why, size_t size, int code, const char *fmt, ...) WEIR_PRINTF(4, 5);
static int say(char *why, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return code;
}

const struct weir_knob *graph_knob_row(const struct weir_knob *table, const char *path, void **base)
{
	char head[64];
	size_t n = strcspn(path, ".");

	if (n >= sizeof(head))
		return NULL;
	memcpy(head, path, n);
	head[n] = '\0';
	const struct weir_knob *row = weir_knob_find(table, head);
	if (!row || path[n] == '\0')
		return row && row->type != WEIR_KNOB_MAP ? row : NULL;
	if (row->type != WEIR_KNOB_MAP)
		return NULL;
	*base = (char *)*base + row->offset;
	return graph_knob_row(row->fields, path + n + 1, base);
}

/* List the paths of all knobs, as suggestions for a misspelt one. The path of a knob in a section
 * is "section.knob". */
static int list_paths(const struct weir_knob *table, char path[][64], int max)
{
	int n = 0;

	for (const struct weir_knob *row = table; row && row->name; row++) {
		if (row->type != WEIR_KNOB_MAP) {
			if (n < max)
				snprintf(path[n++], 64, "%s", row->name);
			continue;
		}
		for (const struct weir_knob *f = row->fields; f && f->name && n < max; f++)
			snprintf(path[n++], 64, "%s.%s", row->name, f->name);
	}
	return n;
}

static const char *nearest_path(
    const struct weir_knob *table, const char *knob, char path[PATHS_MAX][64])
{
	const char *names[PATHS_MAX];
	int n = list_paths(table, path, PATHS_MAX);

	for (int i = 0; i < n; i++)
		names[i] = path[i];
	return weir_nearest(knob, names, n);
}

int graph_no_knob(const struct weir_knob *table, const char *who, const char *name,
    const char *knob, char *why, size_t size)
{
	char path[PATHS_MAX][64];
	const char *near = nearest_path(table, knob, path);

	return say(why, size, WEIR_ENOENT, "%s '%s' has no knob '%s'%s%s%s", who, name, knob,
	    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int no_knob(const struct weir_stage *st, const char *knob, char *why, size_t size)
{
	return graph_no_knob(weir_stage_knobs, "stage", st->name, knob, why, size);
}

static int no_with(const struct weir_stage *st, const char *knob, char *why, size_t size)
{
	char path[PATHS_MAX][64];
	const char *near = nearest_path(st->ops->knobs, knob, path);

	return say(why, size, WEIR_ENOENT, "'%s' (%s) has no knob '%s'%s%s%s", st->name,
	    st->ops->name, knob, near ? ", did you mean 'with." : "", near ? near : "",
	    near ? "'?" : "");
}

int graph_knob_parse(
    const struct weir_knob *row, const char *value, void *base, char *why, size_t size)
{
	int rc = weir_knob_parse(row, value, base, why, size);
	size_t n = rc == 0 ? 0 : strlen(why);
	double min, max;

	/* the message for a value out of range names one bound; append the whole range */
	if (rc == 0 || !strstr(why, "' is too ") || !knob_bounds(row, &min, &max))
		return rc;
	struct text_out out = {why + n, size - n, 0};
	bool real = row->type == WEIR_KNOB_RATE || row->type == WEIR_KNOB_RATIO;
	for (int i = 0; i < 2; i++) {
		text_put(&out, i == 0 ? " (from " : " to ");
		if (real)
			knob_put_real(&out, row->type, i == 0 ? min : max);
		else
			knob_put_whole(&out, row->type, (int64_t)(i == 0 ? min : max));
	}
	text_put(&out, ")");
	text_end(&out);
	return rc;
}

static int check_threads(const struct weir_threads_spec *t, char *why, size_t size)
{
	if (t->min >= 1 && t->max >= 1 && t->min > t->max)
		return say(why, size, WEIR_EINVAL,
		    "threads.min %lld would be greater than threads.max %lld", (long long)t->min,
		    (long long)t->max);
	return 0;
}

/* Check that the thread budget of the machine covers the minimums of all pools. `t` has the new
 * minimum of the stage's pool. */
static int check_budget(
    const struct weir_stage *st, const struct weir_threads_spec *t, char *why, size_t size)
{
	const struct weir_graph *g = st->graph;
	int sum, max, budget = task_budget();

	pool_bounds(t, task_cores(), &sum, &max);
	if (sum <= atomic_load(&st->pool->min))
		return 0;
	for (int i = 0; i < g->n_pools; i++)
		sum += g->pools[i] == st->pool ? 0 : atomic_load(&g->pools[i]->min);
	if (sum > budget)
		return say(why, size, WEIR_EINVAL,
		    "the pools would need at least %d threads, but the budget of this machine is "
		    "%d",
		    sum, budget);
	return 0;
}

static int check_degrade(const struct weir_degrade_spec *d, char *why, size_t size)
{
	if (d->below >= d->above)
		return say(why, size, WEIR_EINVAL,
		    "degrade.below %g would not be less than degrade.above %g", d->below, d->above);
	return 0;
}

/* Check the width of a stage that holds events against the limit of its queue. */
static int check_width(const struct weir_stage_spec *s, char *why, size_t size)
{
	long long min = s->width.min, max = weir_spec_width_max(s), limit = s->queue.limit;

	if (max > limit)
		return say(why, size, WEIR_EINVAL,
		    "width.max %lld would be greater than queue.limit %lld", max, limit);
	if (min > max)
		return say(why, size, WEIR_EINVAL,
		    "width.min %lld would be greater than width.max %lld", min, max);
	return 0;
}

/* Check that events can meet the objective in `s`, as `weir check` does. */
static int check_slo(
    const struct weir_stage *st, const struct weir_stage_spec *s, char *why, size_t size)
{
	int64_t slo_ns = weir_spec_slo_ns(st->graph->spec, s), service_ns = 0;
	/* drops const, since reading takes a lock */
	struct conf *c = stage_conf_get(st->graph->stages[st->id]);

	if (st->ops->service_ns && c)
		service_ns = st->ops->service_ns(c->data);
	conf_put(c);
	if (s->slo_ns >= 0 && slo_ns < service_ns)
		return say(why, size, WEIR_EINVAL,
		    "stage '%s' takes %s ms for one event, so none could meet an objective of %s "
		    "ms",
		    st->name, MS_TEXT(service_ns), MS_TEXT(slo_ns));
	if (s->queue.starve_ns > slo_ns)
		return say(why, size, WEIR_EINVAL,
		    "queue.starve %s ms would be longer than the objective, %s ms",
		    MS_TEXT(s->queue.starve_ns), MS_TEXT(slo_ns));
	if (s->urgent.wait_ns > slo_ns)
		return say(why, size, WEIR_EINVAL,
		    "urgent.wait %s ms would be longer than the objective, %s ms",
		    MS_TEXT(s->urgent.wait_ns), MS_TEXT(slo_ns));
	return 0;
}

static bool is_in(const char *knob, const char *section)
{
	size_t n = strlen(section);

	return strncmp(knob, section, n) == 0 && knob[n] == '.';
}

/* Whether only stages of core groups have the knob. */
static bool is_for_cores(const char *knob)
{
	return is_in(knob, "urgent") || strcmp(knob, "local") == 0;
}

/* Check that the values in the section of `knob` in `s` are consistent for the stage. Other
 * sections are not checked, since they may be unused, such as `threads` of a group member. */
static int check_section(const struct weir_stage *st, const struct weir_stage_spec *s,
    const char *knob, char *why, size_t size)
{
	if (is_in(knob, "threads")) {
		int rc = check_threads(&s->threads, why, size);
		return rc == 0 ? check_budget(st, &s->threads, why, size) : rc;
	}
	if (strcmp(knob, "slo") == 0)
		return check_slo(st, s, why, size);
	if (is_in(knob, "degrade"))
		return check_degrade(&s->degrade, why, size);
	if (st->pool && st->pool->cores &&
	    (is_for_cores(knob) || is_in(knob, "queue") || is_in(knob, "cohort"))) {
		int rc = graph_check_stage(st, s, why, size);
		if (rc != 0)
			return rc;
	}
	if (is_in(knob, "width") || (is_in(knob, "queue") && stage_has_width(st)))
		return check_width(s, why, size);
	if (is_in(knob, "admission") && st->sink.policy == &admission_rate &&
	    s->admission.rate <= 0)
		return say(why, size, WEIR_EINVAL, "admission policy 'rate' needs a rate");
	return 0;
}

void graph_stage_slo(struct weir_stage *st)
{
	atomic_store(&st->sink.slo_ns, weir_spec_slo_ns(st->graph->spec, st->spec));
	atomic_store(&st->sink.queue.starve_ns, graph_starve_ns(st));
}

static void apply(struct weir_stage *st, bool admission)
{
	const struct weir_stage_spec *s = st->spec;

	if (st->pool && s->group[0] == '\0' && !s->inlined) {
		int min, max;
		pool_bounds(&s->threads, task_cores(), &min, &max);
		pool_set_bounds(st->pool, min, max);
	}
	if (st->pool || s->inlined)
		queue_set_limit(&st->sink.queue, (uint32_t)s->queue.limit);
	graph_stage_slo(st);
	graph_batch_bound(st, (int)s->cohort.max);
	graph_width_bound(st);
	atomic_store(&st->children, (unsigned)s->children);
	if (atomic_exchange(&st->sink.linger_ns, s->cohort.linger_ns) != s->cohort.linger_ns &&
	    st->pool)
		pool_linger(st->pool);
	if (st->pool && st->pool->cores)
		graph_group_renew(st->graph, st->pool);
	if (admission) /* only for an admission knob, since this resets the policy's state */
		sink_set_admission(&st->sink, &s->admission, clock_now_ns());
}

static int not_live(const struct weir_stage *st, const char *knob, char *why, size_t size)
{
	return say(why, size, WEIR_EINVAL, "'%s' of stage '%s' cannot change while the server runs",
	    knob, st->name);
}

static int stage_knob_live(const struct weir_stage *st, const char *knob, char *why, size_t size)
{
	const struct weir_knob *row;
	void *base = st->spec;

	if (strncmp(knob, "with.", 5) == 0) {
		row = st->ops->knobs ? weir_knob_find(st->ops->knobs, knob + 5) : NULL;
		if (!row)
			return no_with(st, knob + 5, why, size);
		return row->flags & WEIR_KNOB_LIVE ? 0 : not_live(st, knob + 5, why, size);
	}
	row = graph_knob_row(weir_stage_knobs, knob, &base);
	if (!row)
		return no_knob(st, knob, why, size);
	if (!(row->flags & WEIR_KNOB_LIVE))
		return not_live(st, knob, why, size);
	if (is_in(knob, "threads") &&
	    (!st->pool || st->spec->group[0] != '\0' || st->spec->inlined))
		return say(why, size, WEIR_EINVAL, "stage '%s' has no pool of its own", st->name);
	if (is_for_cores(knob) && (!st->pool || !st->pool->cores))
		return say(why, size, WEIR_EINVAL,
		    "stage '%s' is not in a group with a schedule per core, so '%s' has no effect",
		    st->name, knob);
	if (strcmp(knob, "children") == 0 && plan_childless(st->ops))
		return say(why, size, WEIR_EINVAL,
		    "stage '%s' %s, so none of its events has children", st->name,
		    plan_childless(st->ops));
	if (is_in(knob, "width") && !stage_has_width(st))
		return say(why, size, WEIR_EINVAL, "stage '%s' holds no events, so it has no width",
		    st->name);
	return 0;
}

/* Whether values of this type are stored in the struct itself and not behind a pointer, so that a
 * copy of the struct is independent. */
static bool is_plain(enum weir_knob_type type)
{
	return type != WEIR_KNOB_STRING && type != WEIR_KNOB_STRINGS && type != WEIR_KNOB_RECORDS;
}

static int set_framework(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size)
{
	struct weir_stage_spec next = *st->spec;
	void *base = &next, *live = st->spec;
	const struct weir_knob *row = graph_knob_row(weir_stage_knobs, knob, &base);

	WEIR_ASSERT(is_plain(row->type)); /* true for all live knobs */
	int rc = graph_knob_parse(row, value, base, why, size);
	if (rc == 0)
		rc = check_section(st, &next, knob, why, size);
	if (rc != 0)
		return rc;
	graph_knob_row(weir_stage_knobs, knob, &live);
	rc = weir_knob_parse(row, value, live, why, size);
	WEIR_ASSERT(rc == 0); /* the same text has just been parsed into the copy */
	apply(st, is_in(knob, "admission"));
	return 0;
}

/* Copy the current configuration block. Live values are printed from the old block and parsed into
 * the new one; all others cannot have changed, so they are bound from the `with:` node again. */
static int copy_conf(struct weir_stage *st, struct conf **out)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct conf *old = stage_conf_get(st), *c = NULL;
	char why[256];
	int rc = errs ? conf_new(st->ops, st->spec->with, st->name, &c, errs) : WEIR_ENOMEM;

	for (const struct weir_knob *k = c ? c->knobs : NULL; rc == 0 && k && k->name; k++) {
		if (!(k->flags & WEIR_KNOB_LIVE))
			continue;
		int n = weir_knob_print(k, old->data, NULL, 0);
		char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
		rc = text ? 0 : WEIR_ENOMEM;
		if (text) {
			weir_knob_print(k, old->data, text, (size_t)n + 1);
			rc = weir_knob_parse(k, text, c->data, why, sizeof(why));
		}
		free(text);
	}
	conf_put(old);
	free(errs);
	if (rc != 0)
		conf_put(c);
	else
		*out = c;
	return rc;
}

static int set_with(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size)
{
	const struct weir_knob *row = weir_knob_find(st->ops->knobs, knob);
	struct conf *c;

	if (copy_conf(st, &c) != 0)
		return say(why, size, WEIR_ENOMEM, "out of memory");
	int rc = graph_knob_parse(row, value, c->data, why, size);
	if (rc == 0)
		stage_conf_set(st, c);
	else
		conf_put(c);
	return rc;
}

int graph_knob_live(const struct owner *of, const char *knob, char *why, size_t size)
{
	return of->stage   ? stage_knob_live(of->stage, knob, why, size)
	       : of->group ? graph_group_knob_live(of, knob, why, size)
			   : graph_class_knob_live(of, knob, why, size);
}

int graph_knob_turn(
    const struct owner *of, const char *knob, const char *value, char *why, size_t size)
{
	struct weir_stage *st = of->stage;
	int rc = graph_knob_live(of, knob, why, size);

	if (rc != 0)
		return rc;
	if (of->class)
		return graph_class_knob_turn(of, knob, value, why, size);
	if (!st)
		return graph_group_knob_turn(of, knob, value, why, size);
	return strncmp(knob, "with.", 5) == 0 ? set_with(st, knob + 5, value, why, size)
					      : set_framework(st, knob, value, why, size);
}

int graph_knob_store(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size)
{
	void *base = st->spec;
	const struct weir_knob *row = graph_knob_row(weir_stage_knobs, knob, &base);

	return row ? graph_knob_parse(row, value, base, why, size) : no_knob(st, knob, why, size);
}

int graph_knob_print(const struct owner *of, const char *knob, char *buf, size_t size)
{
	struct weir_stage *st = of->stage;
	const struct weir_knob *row;
	int rc = WEIR_ENOENT;

	if (st && strncmp(knob, "with.", 5) == 0) {
		struct conf *c = stage_conf_get(st);
		row = st->ops->knobs ? weir_knob_find(st->ops->knobs, knob + 5) : NULL;
		if (row)
			rc = weir_knob_print(row, c->data, buf, size) < 0 ? WEIR_EINVAL : 0;
		conf_put(c);
		return rc;
	}
	void *base = st          ? (void *)st->spec
		     : of->group ? (void *)of->group
				 : (void *)graph_class_spec(of);
	row = graph_knob_row(st          ? weir_stage_knobs
			     : of->group ? weir_group_knobs
					 : weir_class_knobs,
	    knob, &base);
	if (row)
		rc = weir_knob_print(row, base, buf, size) < 0 ? WEIR_EINVAL : 0;
	return rc;
}

int weir_graph_get(
    const struct weir_graph *g, const char *stage, const char *knob, char *buf, size_t size)
{
	struct weir_graph *graph =
	    g->stages[0]->graph; /* drops const, since reading takes a lock */
	struct owner of;
	char why[2];

	if (!graph_find_owner(graph, stage, &of, why, sizeof(why)))
		return WEIR_ENOENT;
	lock_take(&graph->lock);
	int rc = graph_knob_print(&of, knob, buf, size);
	lock_release(&graph->lock);
	return rc;
}
