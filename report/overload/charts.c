/* SPDX-License-Identifier: MIT */
/* Builds the charts of the overload report; see parts.h. */
#include "report/overload/parts.h"

#include <math.h>
#include <string.h>

/* Minimum length of a bin in charts over time. 0.25 s is a guess: at a few hundred requests per
 * second, shorter bins show mostly noise. */
#define BIN_S 0.25

/* Largest ratio that is shown. Larger ones are cut off, so that one failing policy does not flatten
 * the curves of the others. */
#define RATIO_MAX 2.5

static void add_policy(
    struct chart *c, const struct over_work *w, int policy, enum over_metric metric)
{
	const char *name = w->policy.name[policy];
	struct series *s = chart_series(c, name, SERIES_MARKED, policy, w->points->n, true);

	if (!s)
		return;
	s->n = 0;
	for (int i = 0; i < w->points->n; i++) {
		const struct over_point *at = &w->points->point[i];
		const struct over_range *v = &at->of[metric];
		if (!over_is_of(w, at->first) || strcmp(at->first->policy, name) != 0 ||
		    at->rounds == 0 || v->n == 0 || !isfinite(v->mid))
			continue;
		s->x[s->n] = at->first->load;
		s->y[s->n] = v->mid;
		s->low[s->n] = v->low;
		s->high[s->n++] = isfinite(v->high) ? v->high : v->mid;
	}
	if (s->n == 0)
		chart_drop(c);
}

struct chart *over_chart_load(const struct over_work *w, enum over_metric metric, const char *title)
{
	struct chart *c = chart_new(title, "offered load / capacity", over_heading[metric]);
	const char *about = "Medians of the rounds, with their range.";
	double low, high;

	if (!c)
		return NULL;
	for (int i = 0; i < w->policy.n && i < CHART_STYLES; i++)
		add_policy(c, w, i, metric);
	chart_span_x(c, &low, &high);
	c->print_x = over_print_load;
	c->x = scale_log(low, high);
	c->print_y = over_print[metric];
	c->y = scale_exact(1.02);
	if (metric == OVER_GOODPUT || metric == OVER_P99) {
		c->y = scale_linear(fmax(fmin(chart_max_y(c), RATIO_MAX), 1) * 1.05);
		chart_rule(c, false, 1, metric == OVER_P99 ? "objective" : "capacity");
	}
	if (metric == OVER_GOODPUT)
		about = "Responses within the objective, divided by the capacity. Medians of the "
			"rounds, with their range.";
	else if (metric == OVER_P99)
		about =
		    strcmp(w->where, "sim") == 0
			? "Of requests that were not refused. Requests completed too late count, "
			  "requests shed in the queue do not."
			: "Of requests that were not refused. Clients give up at the objective, so "
			  "a value above 1 means only that more than one in a hundred gave up.";
	snprintf(c->about, sizeof(c->about), "%s", about);
	return c;
}

/* ---- over time ---- */

/* Add a series with the means over the rounds, which all have the same number of bins. Several bins
 * are joined to one value. */
static void add_goodput(
    struct chart *c, const struct over_work *w, const struct over_row *first, int style)
{
	int join = first->bin_s > 0 ? (int)ceil(BIN_S / first->bin_s - 1e-9) : 1;
	int n = first->n_bins / join, rounds = 0;
	struct series *s =
	    n > 0 ? chart_series(c, first->policy, SERIES_LINE, style, n, false) : NULL;

	for (int i = 0; s && i < w->rows->n; i++) {
		const struct over_row *r = &w->rows->row[i];
		if (!over_same_point(r, first) || r->n_bins != first->n_bins)
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

/* Add the number of threads as a series of steps, by repeating the old number at the time of each
 * change. */
static void add_threads(struct chart *c, const struct over_row *r, int style)
{
	int n = 2 * r->n_threads - 1;
	struct series *s = chart_series(c, r->policy, SERIES_LINE, style, n, false);

	for (int i = 0; s && i < n; i++) {
		s->x[i] = r->threads_s[(i + 1) / 2];
		s->y[i] = r->threads[i / 2];
	}
}

/* Name the parts of the run before, during and after a spike or a fault. */
static void add_trouble(struct chart *c, const struct over_row *r)
{
	double end_s = c->x.high;

	if (isnan(r->from_s))
		return;
	chart_band(c, 0, r->from_s, "before");
	chart_band(c, r->from_s, fmin(r->to_s, end_s), "meanwhile");
	if (r->to_s < end_s - 0.5)
		chart_band(c, r->to_s, end_s, "after");
}

struct chart *over_chart_time(const struct over_work *w, double load, bool threads)
{
	struct chart *c = chart_new(threads ? "Threads over time" : "Goodput over time", "seconds",
	    threads ? "threads of the pool" : "goodput / capacity");
	const struct over_row *shown = NULL;
	double end_s = 1;

	if (!c)
		return NULL;
	for (int i = 0; i < w->policy.n && i < CHART_STYLES; i++) {
		const struct over_point *at = over_at(w, i, load);
		if (!at || at->rounds == 0 ||
		    (threads ? at->first->n_threads : at->first->n_bins) == 0)
			continue;
		shown = at->first;
		if (threads)
			add_threads(c, shown, i);
		else
			add_goodput(c, w, shown, i);
		end_s = threads ? fmax(end_s, shown->threads_s[shown->n_threads - 1])
				: shown->n_bins * shown->bin_s;
	}
	if (!shown)
		return c;
	snprintf(c->about, sizeof(c->about), "At %.3g times the capacity%s", load,
	    threads ? ", first round. All lines have the same resize policy, and the admission "
		      "policy of their name."
		    : ". Responses in time, at the time at which their requests were due; means of "
		      "the rounds.");
	c->print_x = format_clock;
	c->x = scale_exact(end_s);
	c->y = scale_linear((threads ? chart_max_y(c) : fmax(chart_max_y(c), 1)) * 1.05);
	if (!threads) {
		c->print_y = over_print_2;
		c->height_px = 300;
	}
	add_trouble(c, shown);
	return c;
}
