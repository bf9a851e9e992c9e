/* SPDX-License-Identifier: MIT */
/*
 * Turning knobs of a running graph, by name and text, with the very words of `check`.
 *
 * A value is parsed into a copy of the stage's spec (or of its `with:` block); only when it is good
 * is the copy made effective: bounds to the pool, limits and admission to the sink, a new
 * configuration block to the threads. graph->lock orders writers; graph_layers.c keeps what was there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob_in.h"
#include "base/task.h"
#include "flow/graph.h"
#include "flow/graph_acts.h"
#include "sched/pool.h"

/* Knobs of a table that a wrong name is compared with. */
#define PATHS_MAX 64

static int say(char *why, size_t size, int code, const char *fmt, ...) WEIR_PRINTF(4, 5);
static int say(char *why, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return code;
}

/* The row and base address that `path` ("threads.max") names in `base`. */
static const struct weir_knob *find_row(
    const struct weir_knob *table, const char *path, void **base)
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
	return find_row(row->fields, path + n + 1, base);
}

/* Paths that a wrong one may have meant: sections and what is in them. */
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

static int no_knob(const struct weir_stage *st, const char *knob, char *why, size_t size)
{
	char path[PATHS_MAX][64];
	const char *near = nearest_path(weir_stage_knobs, knob, path);

	return say(why, size, WEIR_ENOENT, "stage '%s' has no knob '%s'%s%s%s", st->name, knob,
	    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int no_with(const struct weir_stage *st, const char *knob, char *why, size_t size)
{
	char path[PATHS_MAX][64];
	const char *near = nearest_path(st->ops->knobs, knob, path);

	return say(why, size, WEIR_ENOENT, "'%s' (%s) has no knob '%s'%s%s%s", st->name,
	    st->ops->name, knob, near ? ", did you mean 'with." : "", near ? near : "",
	    near ? "'?" : "");
}

/* A number out of range names one bound: add the whole range. */
static int parse(const struct weir_knob *row, const char *value, void *base, char *why, size_t size)
{
	int rc = weir_knob_parse(row, value, base, why, size);
	size_t n = rc == 0 ? 0 : strlen(why);
	double min, max;

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

/* Parse into a scratch copy first, so that a bad pair of bounds changes nothing. */
static int check_threads(const struct weir_threads_spec *t, char *why, size_t size)
{
	if (t->min >= 1 && t->max >= 1 && t->min > t->max)
		return say(why, size, WEIR_EINVAL,
		    "threads.min %lld would be greater than threads.max %lld", (long long)t->min,
		    (long long)t->max);
	return 0;
}

static int check_degrade(const struct weir_degrade_spec *d, char *why, size_t size)
{
	if (d->below >= d->above)
		return say(why, size, WEIR_EINVAL,
		    "degrade.below %g would not be less than degrade.above %g", d->below, d->above);
	return 0;
}

static int resolve_auto(int64_t v)
{
	return v < 0 ? task_cores() : (int)v;
}

static void apply(struct weir_stage *st, bool admission)
{
	const struct weir_stage_spec *s = st->spec;

	if (st->pool && s->group[0] == '\0') {
		int min = resolve_auto(s->threads.min), max = resolve_auto(s->threads.max);
		pool_set_bounds(st->pool, min, max < min ? min : max);
	}
	if (st->pool)
		queue_set_limit(&st->sink.queue, (uint32_t)s->queue.limit);
	graph_batch_bound(st, (int)s->cohort.max);
	atomic_store(&st->sink.linger_ns, s->cohort.linger_ns);
	if (admission) /* its state starts afresh: only when asked */
		sink_set_admission(&st->sink, &s->admission, clock_now_ns());
}

static int set_framework(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size)
{
	struct weir_threads_spec before = st->spec->threads;
	struct weir_degrade_spec degrade_before = st->spec->degrade;
	double rate_before = st->spec->admission.rate;
	void *base = st->spec;
	const struct weir_knob *row = find_row(weir_stage_knobs, knob, &base);

	if (!row)
		return no_knob(st, knob, why, size);
	if (!(row->flags & WEIR_KNOB_LIVE))
		return say(why, size, WEIR_EINVAL,
		    "'%s' of stage '%s' can not change while the server runs", knob, st->name);
	if (strncmp(knob, "threads.", 8) == 0 && (!st->pool || st->spec->group[0] != '\0'))
		return say(why, size, WEIR_EINVAL, "stage '%s' has no pool of its own", st->name);
	int rc = parse(row, value, base, why, size);
	if (rc == 0 && (rc = check_threads(&st->spec->threads, why, size)) != 0)
		st->spec->threads = before;
	if (rc == 0 && (rc = check_degrade(&st->spec->degrade, why, size)) != 0)
		st->spec->degrade = degrade_before;
	if (rc == 0 && st->sink.policy == &admission_rate && st->spec->admission.rate <= 0) {
		st->spec->admission.rate = rate_before;
		rc = say(why, size, WEIR_EINVAL, "admission policy 'rate' needs a rate");
	}
	if (rc == 0)
		apply(st, strncmp(knob, "admission.", 10) == 0);
	return rc;
}

/* A copy of the present block: print every scalar of the old, parse it into the new. Rows that are
 * not scalar can not change live, so the `with:` node gives them again. */
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
	const struct weir_knob *row = st->ops->knobs ? weir_knob_find(st->ops->knobs, knob) : NULL;
	struct conf *c;

	if (!row)
		return no_with(st, knob, why, size);
	if (!(row->flags & WEIR_KNOB_LIVE))
		return say(why, size, WEIR_EINVAL,
		    "'%s' of stage '%s' can not change while the server runs", knob, st->name);
	if (copy_conf(st, &c) != 0)
		return say(why, size, WEIR_ENOMEM, "out of memory");
	int rc = parse(row, value, c->data, why, size);
	if (rc == 0)
		stage_conf_set(st, c);
	else
		conf_put(c);
	return rc;
}

int graph_knob_turn(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size)
{
	return strncmp(knob, "with.", 5) == 0 ? set_with(st, knob + 5, value, why, size)
					      : set_framework(st, knob, value, why, size);
}

int graph_knob_print(struct weir_stage *st, const char *knob, char *buf, size_t size)
{
	const struct weir_knob *row;
	int rc = WEIR_ENOENT;

	if (strncmp(knob, "with.", 5) == 0) {
		struct conf *c = stage_conf_get(st);
		row = st->ops->knobs ? weir_knob_find(st->ops->knobs, knob + 5) : NULL;
		if (row)
			rc = weir_knob_print(row, c->data, buf, size) < 0 ? WEIR_EINVAL : 0;
		conf_put(c);
		return rc;
	}
	void *base = st->spec;
	row = find_row(weir_stage_knobs, knob, &base);
	if (row)
		rc = weir_knob_print(row, base, buf, size) < 0 ? WEIR_EINVAL : 0;
	return rc;
}

int weir_graph_get(
    const struct weir_graph *g, const char *stage, const char *knob, char *buf, size_t size)
{
	struct weir_stage *st = weir_graph_stage(g, stage);

	if (!st)
		return WEIR_ENOENT;
	lock_take(&st->graph->lock);
	int rc = graph_knob_print(st, knob, buf, size);
	lock_release(&st->graph->lock);
	return rc;
}
