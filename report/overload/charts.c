/* SPDX-License-Identifier: MIT */
/* Builds the charts of the overload report; see charts.h. */
#include "report/overload/charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Minimum length of a bin in charts over time. 0.25 s is a guess: at a few hundred requests per
 * second, shorter bins show mostly noise. */
#define BIN_S 0.25

/* Largest ratio that is shown. Larger ones are cut off, so that one failing policy does not flatten
 * the curves of the others. */
#define RATIO_MAX 2.5

double over_highest_load(const struct over_points *p, const char *where, const char *workload)
{
	double most = 0;

	for (int i = 0; i < p->n; i++) {
		const struct over_row *r = p->point[i].first;
		if (p->point[i].rounds > 0 && strcmp(r->where, where) == 0 &&
		    strcmp(r->workload, workload) == 0)
			most = fmax(most, r->load);
	}
	return most;
}

static bool is_of(
    const struct over_row *r, const char *where, const char *workload, const char *policy)
{
	return strcmp(r->where, where) == 0 && strcmp(r->workload, workload) == 0 &&
	       strcmp(r->policy, policy) == 0;
}

static void add_policy(struct chart *c, const struct over_points *p, const char *where,
    const char *workload, const char *policy, int style, enum over_metric metric)
{
	struct series *s = chart_series(c, policy, SERIES_MARKED, style, p->n, true);

	if (!s)
		return;
	s->n = 0;
	for (int i = 0; i < p->n; i++) {
		const struct over_range *v = &p->point[i].of[metric];
		if (!is_of(p->point[i].first, where, workload, policy) || p->point[i].rounds == 0 ||
		    v->n == 0 || !isfinite(v->mid))
			continue;
		s->x[s->n] = p->point[i].first->load;
		s->y[s->n] = v->mid;
		s->low[s->n] = v->low;
		s->high[s->n++] = isfinite(v->high) ? v->high : v->mid;
	}
	if (s->n == 0) {
		chart_series_fini(s);
		c->n_series--;
	}
}

static void span_loads(struct chart *c)
{
	double low = INFINITY, high = 0;

	for (int i = 0; i < c->n_series; i++)
		for (int k = 0; k < c->series[i].n; k++) {
			low = fmin(low, c->series[i].x[k]);
			high = fmax(high, c->series[i].x[k]);
		}
	c->print_x = over_print_load;
	c->x = scale_log(low, high);
}

/* Set the caption and the y axis for the metric. */
static void scale_metric(struct chart *c, const char *where, enum over_metric metric)
{
	double high = fmin(chart_max_y(c), RATIO_MAX);

	c->print_y = over_print[metric];
	c->y = scale_linear(fmax(high, 1) * 1.05);
	if (metric == OVER_GOODPUT) {
		chart_rule(c, false, 1, "capacity");
		snprintf(c->about, sizeof(c->about),
		    "Answers within the objective over the capacity. Medians of the rounds, with "
		    "their range.");
	} else if (metric == OVER_P99) {
		chart_rule(c, false, 1, "objective");
		snprintf(c->about, sizeof(c->about), "Of what was not refused. %s",
		    strcmp(where, "sim") == 0 ? "What was completed too late counts, what was "
						"given up in the queue does not."
					      : "Clients give up at the objective: over 1 says "
						"that more than one in a hundred did, "
						"not how long it would have taken.");
	} else {
		snprintf(c->about, sizeof(c->about), "Medians of the rounds, with their range.");
		c->y = scale_exact(1.02);
	}
}

struct chart *over_chart_load(const struct over_points *p, const char *where, const char *workload,
    enum over_metric metric, const char *title)
{
	struct over_names policy = over_policies(p, where);
	struct chart *c = chart_new(title, "offered load / capacity", over_heading[metric]);

	if (!c)
		return NULL;
	for (int i = 0; i < policy.n && i < CHART_STYLES; i++)
		add_policy(c, p, where, workload, policy.name[i], i, metric);
	span_loads(c);
	scale_metric(c, where, metric);
	return c;
}

/* ---- over time ---- */

/* Add a series with the means over the rounds, which all have the same number of bins. Several bins
 * are joined to one value. */
static void add_series(struct chart *c, const struct over_rows *rows, const struct over_point *at,
    const char *name, int style)
{
	const struct over_row *first = at->first;
	int join = first->bin_s > 0 ? (int)ceil(BIN_S / first->bin_s - 1e-9) : 1;
	int n = first->n_bins / join, rounds = 0;
	struct series *s = n > 0 ? chart_series(c, name, SERIES_LINE, style, n, false) : NULL;

	for (int i = 0; s && i < rows->n; i++) {
		const struct over_row *r = &rows->row[i];
		if (!is_of(r, first->where, first->workload, first->policy) ||
		    r->n_bins != first->n_bins || fabs(r->load - first->load) > 1e-9 ||
		    r->is_void != first->is_void)
			continue;
		rounds++;
		for (int k = 0; k < n * join; k++)
			s->y[k / join] += r->good[k];
	}
	for (int k = 0; s && k < n; k++) {
		s->x[k] = (k + 0.5) * join * first->bin_s;
		s->y[k] /= rounds * join;
	}
}

static void add_trouble(struct chart *c, const struct over_row *r, double end_s)
{
	chart_band(c, 0, r->from_s, "before");
	chart_band(c, r->from_s, fmin(r->to_s, end_s), "meanwhile");
	if (r->to_s < end_s - 0.5)
		chart_band(c, r->to_s, end_s, "after");
}

struct chart *over_chart_time(const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load)
{
	struct over_names policy = over_policies(p, where);
	struct chart *c = chart_new("Goodput over time", "seconds", "goodput / capacity");
	const struct over_point *shown = NULL;

	if (!c)
		return NULL;
	for (int i = 0; i < policy.n && i < CHART_STYLES; i++) {
		const struct over_point *at =
		    over_point_find(p, where, workload, policy.name[i], load);
		if (!at || at->rounds == 0 || at->first->n_bins == 0)
			continue;
		shown = at;
		add_series(c, rows, at, policy.name[i], i);
	}
	if (!shown)
		return c;
	snprintf(c->about, sizeof(c->about),
	    "At %.3g times the capacity. Answers in time, by when their requests were due; means "
	    "of the rounds.",
	    load);
	c->print_x = format_clock;
	c->print_y = over_print_2;
	c->x = scale_exact(shown->first->n_bins * shown->first->bin_s);
	c->y = scale_linear(fmax(chart_max_y(c), 1) * 1.05);
	c->height_px = 300;
	if (!isnan(shown->first->from_s))
		add_trouble(c, shown->first, c->x.high);
	return c;
}

/* Add the number of threads as a series of steps, by repeating the old number at the time of each
 * change. */
static void add_threads(struct chart *c, const struct over_row *r, const char *name, int style)
{
	struct series *s = chart_series(c, name, SERIES_LINE, style, 2 * r->n_threads, false);

	if (!s)
		return;
	s->n = 0;
	for (int i = 0; i < r->n_threads; i++) {
		if (i > 0) {
			s->x[s->n] = r->threads_s[i];
			s->y[s->n++] = r->threads[i - 1];
		}
		s->x[s->n] = r->threads_s[i];
		s->y[s->n++] = r->threads[i];
	}
}

struct chart *over_chart_threads(
    const struct over_points *p, const char *where, const char *workload, double load)
{
	struct over_names policy = over_policies(p, where);
	struct chart *c = chart_new("Threads over time", "seconds", "threads of the pool");
	const struct over_row *shown = NULL;
	double end_s = 1;

	if (!c)
		return NULL;
	for (int i = 0; i < policy.n && i < CHART_STYLES; i++) {
		const struct over_point *at =
		    over_point_find(p, where, workload, policy.name[i], load);
		if (!at || at->rounds == 0 || at->first->n_threads == 0)
			continue;
		shown = at->first;
		add_threads(c, shown, policy.name[i], i);
		end_s = fmax(end_s, shown->threads_s[shown->n_threads - 1]);
	}
	if (!shown)
		return c;
	snprintf(c->about, sizeof(c->about),
	    "At %.3g times the capacity, first round. All have the same controller of threads, and "
	    "the admission policy "
	    "of their name.",
	    load);
	c->print_x = format_clock;
	c->x = scale_exact(end_s);
	c->y = scale_linear(chart_max_y(c) * 1.05);
	if (!isnan(shown->from_s))
		add_trouble(c, shown, end_s);
	return c;
}
