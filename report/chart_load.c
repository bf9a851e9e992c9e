/* SPDX-License-Identifier: MIT */
/*
 * Builds charts over the offered load. A point is the median of the rounds at one load; a vertical
 * line shows their range. Ramps are omitted, since they have no single load.
 */
#include "report/charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare.h"

/* Ratio of the highest to the lowest load above which the axis is logarithmic. 12 is a guess: a
 * linear axis has space for a dozen ticks. */
#define LOAD_SPAN_LINEAR 12
/* Number of points in a smooth curve. */
#define CURVE_POINTS 160
/* Maximum number of curves that can be told apart. */
#define TAIL_CURVES 6

static bool steady(const struct rundata *run, int point)
{
	return run->plan.closed || run->point[point].from_per_s == run->point[point].to_per_s;
}

/* Add the points of a run as a series of `metric`. */
static void add_run(
    struct chart *c, const struct rundata *run, enum run_metric metric, const char *name, int style)
{
	struct series *s =
	    chart_series(c, name, SERIES_MARKED, style % CHART_STYLES, run->n_points, true);
	double x[3], y[3];

	if (!s)
		return;
	s->n = 0;
	for (int p = 0; p < run->n_points; p++) {
		if (!steady(run, p) || !rundata_offered(run, p, x) ||
		    !rundata_over_rounds(run, p, metric, y))
			continue;
		s->x[s->n] = x[0];
		s->y[s->n] = y[0];
		s->low[s->n] = y[1];
		s->high[s->n++] = y[2];
	}
}

/* Find the smallest and the largest x of all series. */
static void span_x(const struct chart *c, double *low, double *high)
{
	*low = INFINITY;
	*high = 0;
	for (int i = 0; i < c->n_series; i++) {
		for (int k = 0; k < c->series[i].n; k++) {
			*low = fmin(*low, c->series[i].x[k]);
			*high = fmax(*high, c->series[i].x[k]);
		}
	}
}

static void scale_load(struct chart *c)
{
	double low, high;

	span_x(c, &low, &high);
	c->print_x = format_rate;
	c->x_name = "offered requests per second";
	if (high > low * LOAD_SPAN_LINEAR)
		c->x = scale_log(low, high);
	else
		c->x = scale_linear(high);
}

/* Mark the capacity of each run, unless it equals that of the previous run. */
static void add_capacities(struct chart *c, const struct rundata *run, int n_runs)
{
	char text[64], rate[FORMAT_MAX];
	double last = 0;

	for (int r = 0; r < n_runs; r++) {
		double capacity = run[r].capacity_per_s;
		if (capacity <= 0 || fabs(capacity - last) < 0.005 * capacity)
			continue;
		snprintf(text, sizeof(text), "capacity%s%.30s %s", last > 0 ? " of " : "",
		    last > 0 ? run[r].name : "", format_rate(rate, capacity));
		chart_rule(c, true, capacity, text);
		last = capacity;
	}
}

/* Add the ideal curve, on which goodput equals the load up to the capacity, and the capacity above
 * it. */
static void add_ideal(struct chart *c, double capacity)
{
	const char *name = capacity > 0 ? "ideal: all of it, up to the capacity" : "all of it";
	struct series *s = chart_series(c, name, SERIES_GUIDE, 0, CURVE_POINTS + 1, false);
	double low = c->x.low;

	for (int i = 0; s && i <= CURVE_POINTS; i++) {
		double at = (double)i / CURVE_POINTS;
		double x = c->x.kind == SCALE_LOG ? low * pow(c->x.high / low, at) : at * c->x.high;
		double y = capacity > 0 ? fmin(x, capacity) : x;
		s->x[i] = x;
		s->y[i] = y <= c->y.high ? y : NAN;
	}
}

static const char *load_how(const struct rundata *run, int n_runs)
{
	for (int r = 0; r < n_runs; r++)
		if (run[r].plan.closed)
			return " In a closed loop the load follows the answers: overload is not "
			       "seen.";
	return "";
}

struct chart *chart_goodput(const struct rundata *run, int n_runs)
{
	struct chart *c = chart_new("Goodput against offered load", "", "served per second");

	if (!c)
		return NULL;
	snprintf(c->about, sizeof(c->about),
	    "Answers within the client's time-out. A server that stays well-conditioned stays flat "
	    "behind its capacity.%s",
	    load_how(run, n_runs));
	for (int r = 0; r < n_runs; r++)
		add_run(c, &run[r], RUN_GOODPUT, run[r].name, r);
	c->print_y = format_rate;
	c->y = scale_linear(fmax(chart_max_y(c), run->capacity_per_s) * 1.05);
	scale_load(c);
	add_capacities(c, run, n_runs);
	add_ideal(c, run->capacity_per_s);
	return c;
}

static void scale_latency(struct chart *c)
{
	c->print_y = format_time;
	/* leave some space at the top for the labels of rules */
	c->y = scale_log(chart_min_y(c), chart_max_y(c) * 1.2);
}

/* Mark the clients' time-out if it is within the axis. */
static void add_timeout(struct chart *c, const struct rundata *run)
{
	double timeout_s = (double)run->plan.timeout_ns / 1e9;

	if (timeout_s <= c->y.high && timeout_s >= c->y.low)
		chart_rule(c, false, timeout_s, "time-out of the clients");
}

struct chart *chart_by_load(
    const struct rundata *run, int n_runs, enum run_metric metric, const char *title)
{
	struct chart *c = chart_new(title, "", "latency (logarithmic)");

	if (!c)
		return NULL;
	snprintf(c->about, sizeof(c->about),
	    "Of served requests, from the time at which each was due.%s", load_how(run, n_runs));
	for (int r = 0; r < n_runs; r++)
		add_run(c, &run[r], metric, run[r].name, r);
	scale_load(c);
	scale_latency(c);
	add_capacities(c, run, n_runs);
	add_timeout(c, run);
	return c;
}

struct chart *chart_quantiles_by_load(const struct rundata *run)
{
	struct chart *c = chart_new("Latency against offered load", "", "latency (logarithmic)");

	if (!c)
		return NULL;
	snprintf(c->about, sizeof(c->about),
	    "Of served requests, from the time at which each was due.%s", load_how(run, 1));
	add_run(c, run, RUN_P999, "p99.9", 2);
	add_run(c, run, RUN_P99, "p99", 1);
	add_run(c, run, RUN_P50, "p50", 0);
	scale_load(c);
	scale_latency(c);
	add_capacities(c, run, 1);
	add_timeout(c, run);
	return c;
}

/* ---- percentiles ---- */

static void add_curve(struct chart *c, const struct hdr *h, const char *name, int style)
{
	double end = h->total > 1 ? log10((double)h->total) : 0;
	struct series *s;

	if (end <= 0)
		return;
	s = chart_series(c, name, SERIES_LINE, style % CHART_STYLES, CURVE_POINTS + 1, false);
	for (int i = 0; s && i <= CURVE_POINTS; i++) {
		s->x[i] = end * i / CURVE_POINTS;
		double q = i < CURVE_POINTS ? 1 - pow(10, -s->x[i]) : 1;
		s->y[i] = (double)hdr_quantile_ns(h, q) / 1e9;
	}
}

static void add_curves_of_runs(
    struct chart *c, const struct rundata *run, int n_runs, int point, struct hdr *h)
{
	bool by_multiple;

	for (int r = 0; r < n_runs; r++) {
		int p = r == 0 ? point : compare_partner(&run[0], point, &run[r], &by_multiple);
		if (p < 0)
			continue;
		rundata_latency(&run[r], p, -1, h);
		add_curve(c, h, run[r].name, r);
	}
}

/* Add one curve per point. If there are more than TAIL_CURVES points, choose evenly spaced ones,
 * including the first and the last. */
static void add_curves_of_points(struct chart *c, const struct rundata *run, struct hdr *h)
{
	int n = run->n_points < TAIL_CURVES ? run->n_points : TAIL_CURVES;

	for (int i = 0; i < n; i++) {
		int p = n > 1 ? i * (run->n_points - 1) / (n - 1) : 0;
		rundata_latency(run, p, -1, h);
		add_curve(c, h, run->point[p].name, i);
	}
}

struct chart *chart_tail(const struct rundata *run, int n_runs, int point)
{
	struct chart *c =
	    chart_new("Latency at every percentile", "percentile", "latency (logarithmic)");
	struct hdr *h = malloc(sizeof(*h));
	double low, high;

	if (!c || !h) {
		chart_free(c);
		free(h);
		return NULL;
	}
	if (point >= 0)
		add_curves_of_runs(c, run, n_runs, point, h);
	else
		add_curves_of_points(c, run, h);
	free(h);
	snprintf(c->about, sizeof(c->about),
	    "Of served requests%s%s. To the right the slowest tenth, hundredth, thousandth.",
	    point >= 0 ? " at " : "", point >= 0 ? run->point[point].name : "");
	span_x(c, &low, &high);
	c->x = scale_exact(high);
	c->x.whole = true; /* one tick per nine: 90 %, 99 %, ... */
	c->print_x = format_tail;
	scale_latency(c);
	add_timeout(c, run);
	return c;
}
