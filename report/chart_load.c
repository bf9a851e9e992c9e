/* SPDX-License-Identifier: MIT */
/*
 * Builds charts over the offered load. A point is the median of the rounds at one load; a vertical
 * line shows their range. Ramps are omitted, since they have no single load.
 */
#include "report/charts.h"

#include <math.h>
#include <stdlib.h>

#include "report/compare.h"

/* Ratio of the highest to the lowest load above which the axis is logarithmic. 12 is a guess: a
 * linear axis has space for a dozen ticks. */
#define LOAD_SPAN_LINEAR 12
/* Number of points in a smooth curve. */
#define CURVE_POINTS 160
/* Maximum number of curves that can be told apart. */
#define TAIL_CURVES 6

/* The y of a point: the median, the least and the greatest value of its rounds. Returns false if
 * there is none. */
struct y_of {
	enum run_metric metric;
	bool served; /* the share of requests served, of `class_id`, instead of a metric */
	int class_id;
};

static bool y_at(const struct rundata *run, int point, const struct y_of *of, double y[3])
{
	return of->served ? rundata_served(run, point, of->class_id, y)
			  : rundata_over_rounds(run, point, of->metric, y);
}

/* Sort a value into the series by x. The planned rates ascend, but the measured ones differ from
 * them by chance, and a line must not run backwards. */
static void put(struct series *s, double x, const double y[3])
{
	int at = s->n++;

	for (; at > 0 && s->x[at - 1] > x; at--) {
		s->x[at] = s->x[at - 1];
		s->y[at] = s->y[at - 1];
		s->low[at] = s->low[at - 1];
		s->high[at] = s->high[at - 1];
	}
	s->x[at] = x;
	s->y[at] = y[0];
	s->low[at] = y[1];
	s->high[at] = y[2];
}

/* Add the points of a run as a series: those of the sweep or, if `trials` is set, of the search. */
static void add_series(struct chart *c, const struct rundata *run, const struct y_of *of,
    const char *name, int style, bool trials)
{
	int from = trials ? run->n_points : 0, n = trials ? run->n_trials : run->n_points;
	struct series *s = chart_series(
	    c, name, trials ? SERIES_POINTS : SERIES_MARKED, style % CHART_STYLES, n, true);
	double x[3], y[3];

	if (!s)
		return;
	s->n = 0;
	for (int p = from; p < from + n; p++) {
		const struct run_point *point = &run->point[p];
		if ((run->plan.closed || point->from_per_s == point->to_per_s) &&
		    rundata_offered(run, p, x) && y_at(run, p, of, y))
			put(s, x[0], y);
	}
}

static void add_run(
    struct chart *c, const struct rundata *run, enum run_metric metric, const char *name, int style)
{
	add_series(c, run, &(struct y_of){.metric = metric}, name, style, false);
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
	const char *name =
	    capacity > 0 ? "ideal: the offered load, up to the capacity" : "all of it";
	struct series *s = chart_series(c, name, SERIES_GUIDE, 0, CURVE_POINTS + 1, false);
	double low = c->x.low, high = c->x.high;

	for (int i = 0; s && i <= CURVE_POINTS; i++) {
		double at = (double)i / CURVE_POINTS;
		double x = c->x.kind == SCALE_LOG ? low * pow(high / low, at) : at * high;
		double y = capacity > 0 ? fmin(x, capacity) : x;
		s->x[i] = x;
		s->y[i] = y <= c->y.high ? y : NAN;
	}
}

/* Set the y scale for latencies, with some space at the top for the labels of rules. Add a rule at
 * the clients' time-out if it is within the scale. */
static void scale_latency(struct chart *c, const struct rundata *run)
{
	double timeout_s = (double)run->plan.timeout_ns / 1e9;

	c->print_y = format_time;
	c->y = chart_log_y(c, 1.2);
	if (timeout_s <= c->y.high && timeout_s >= c->y.low)
		chart_rule(c, false, timeout_s, "time-out of the clients");
}

static void scale_load(struct chart *c)
{
	double low, high;

	chart_span_x(c, &low, &high);
	c->print_x = format_rate;
	c->x = high > low * LOAD_SPAN_LINEAR ? scale_log(low, high) : scale_linear(high);
}

struct chart *chart_by_load(const struct rundata *run, int n_runs, enum run_metric metric)
{
	bool goodput = metric == RUN_GOODPUT, all = n_runs == 1 && !goodput, closed = false;
	struct chart *c = chart_new(goodput             ? "Goodput against offered load"
				    : all               ? "Latency against offered load"
				    : metric == RUN_P99 ? "p99 against offered load"
							: "p50 against offered load",
	    "offered requests per second", goodput ? "served per second" : "latency (logarithmic)");

	if (!c)
		return NULL;
	for (int r = 0; r < n_runs; r++) {
		closed = closed || run[r].plan.closed;
		if (!all)
			add_run(c, &run[r], metric,
			    n_runs == 1 && run->n_trials > 0 ? "the sweep" : run[r].name, r);
	}
	if (n_runs == 1 && goodput && run->n_trials > 0)
		add_series(
		    c, run, &(struct y_of){.metric = metric}, "trials of the search", 4, true);
	for (int m = RUN_P999; all && m >= RUN_P50; m--)
		add_run(c, run, (enum run_metric)m, run_metric[m].heading, m - RUN_P50);
	snprintf(c->about, sizeof(c->about), "%s%s",
	    goodput ? "Responses within the client's time-out. The line of a well-conditioned "
		      "server stays flat above its capacity."
		    : "Of served requests, measured from the time at which each request was due.",
	    closed ? " In a closed loop the clients wait for responses, so the server cannot be "
		     "overloaded."
		   : "");
	scale_load(c);
	add_capacities(c, run, n_runs);
	if (!goodput) {
		scale_latency(c, run);
		return c;
	}
	c->print_y = format_rate;
	c->y = scale_linear(fmax(chart_max_y(c), run->capacity_per_s) * 1.05);
	add_ideal(c, run->capacity_per_s);
	return c;
}

/* ---- classes ---- */

struct chart *chart_served(const struct rundata *run, int n_runs, int class_id)
{
	struct chart *c = chart_new("Share of requests served, by class",
	    "offered requests per second", "share served of what the class offered");
	char name[112];

	if (!c)
		return NULL;
	for (int r = 0; r < n_runs; r++)
		for (int i = 0; i < run[r].plan.n_classes; i++) {
			if (class_id >= 0 && i != class_id)
				continue;
			snprintf(name, sizeof(name), "%.60s",
			    class_id < 0 ? run[r].plan.class[i].name : run[r].name);
			add_series(c, &run[r], &(struct y_of){.served = true, .class_id = i}, name,
			    class_id < 0 ? i : r, false);
		}
	snprintf(c->about, sizeof(c->about),
	    "Outcomes ok and degraded%s%.32s%s. Under overload, important classes should stay at "
	    "the top.",
	    class_id < 0 ? "" : ", of class '", class_id < 0 ? "" : run->plan.class[class_id].name,
	    class_id < 0 ? "" : "'");
	scale_load(c);
	add_capacities(c, run, n_runs);
	c->print_y = format_share;
	c->y = scale_exact(1.12); /* room for the labels of rules above 100 % */
	return c;
}

/* ---- percentiles ---- */

static void add_curve(
    struct chart *c, const struct rundata *run, int point, struct hdr *h, const char *name, int i)
{
	struct series *s;

	rundata_latency(run, point, -1, h);
	if (h->total < 2)
		return;
	s = chart_series(c, name, SERIES_LINE, i % CHART_STYLES, CURVE_POINTS + 1, false);
	for (int k = 0; s && k <= CURVE_POINTS; k++) {
		s->x[k] = log10((double)h->total) * k / CURVE_POINTS;
		double q = k < CURVE_POINTS ? 1 - pow(10, -s->x[k]) : 1;
		s->y[k] = (double)hdr_quantile_ns(h, q) / 1e9;
	}
}

/* Add one curve per run at `point`, or, if `point` is -1, one curve per load point of the only run.
 * Of more than TAIL_CURVES points, evenly spaced ones are shown, including the first and the
 * last. */
static void add_curves(
    struct chart *c, const struct rundata *run, int n_runs, int point, struct hdr *h)
{
	int n = run->n_points < TAIL_CURVES ? run->n_points : TAIL_CURVES;
	bool by_multiple;

	for (int r = 0; point >= 0 && r < n_runs; r++) {
		int p = r == 0 ? point : compare_partner(&run[0], point, &run[r], &by_multiple);
		if (p >= 0)
			add_curve(c, &run[r], p, h, run[r].name, r);
	}
	for (int i = 0; point < 0 && i < n; i++) {
		int p = n > 1 ? i * (run->n_points - 1) / (n - 1) : 0;
		add_curve(c, run, p, h, run->point[p].name, i);
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
	add_curves(c, run, n_runs, point, h);
	free(h);
	snprintf(c->about, sizeof(c->about),
	    "Of served requests%s%s. To the right are the slowest tenth, hundredth and thousandth.",
	    point >= 0 ? " at " : "", point >= 0 ? run->point[point].name : "");
	chart_span_x(c, &low, &high);
	c->x = scale_exact(high);
	c->x.whole = true; /* ticks at 90 %, 99 %, 99.9 % ... */
	c->print_x = format_tail;
	scale_latency(c, run);
	return c;
}
