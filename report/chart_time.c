/* SPDX-License-Identifier: MIT */
/*
 * Builds charts of one run over time. All have the same time axis, so that the results of the
 * clients line up with the activity of the stages. Long runs are binned. Most series show the mean
 * of a bin. The p99 latency, the requests in flight and the data of the stages show the greatest
 * value of a bin, since a mean would hide short peaks.
 */
#include "report/charts.h"

#include <math.h>

/* Maximum number of bins along the axis: more bins would be narrower than a pixel. */
#define TIME_BINS_MAX 400
/* Maximum number of stages in a chart. */
#define TIME_STAGES CHART_STYLES
/* Waits up to this time count as no wait. It is above the first bucket of the server's histogram,
 * which contains all waits of stages without a queue. */
#define TIME_NO_WAIT_S 1.5e-6
#define TIME_LINES     6

/* Values of one second that can be drawn. */
enum time_value {
	TIME_OFFERED = LOAD_N_OUTCOMES, /* smaller values are outcomes */
	TIME_SERVED,
	TIME_P50,
	TIME_P99,
	TIME_IN_FLIGHT,
	TIME_CONNECTIONS,
};

struct time_line {
	const char *name;
	enum series_shape shape; /* areas are stacked */
	int style, value;
	bool worst; /* show the maximum of a bin instead of the mean */
};

static const struct time_chart {
	const char *title, *y_name, *about;
	int height_px;
	bool numbered, log, capacity;
	format_fn *print;
	/* empty for charts of the server, whose lines are the stages */
	struct time_line line[TIME_LINES];
} time_charts[CHARTS_BY_TIME] = {
    {"Offered requests and their outcomes", "requests per second",
	"Outcomes are stacked and counted in the second of the response; the line is the offered "
	"load.",
	240, true, false, false, format_rate,
	{{"ok", SERIES_AREA, FILL_OK, LOAD_OK, false},
	    {"degraded", SERIES_AREA, FILL_DEGRADED, LOAD_DEGRADED, false},
	    {"shed", SERIES_AREA, FILL_SHED, LOAD_SHED, false},
	    {"error", SERIES_AREA, FILL_ERROR, LOAD_ERROR, false},
	    {"timeout or gone", SERIES_AREA, FILL_TIMEOUT, LOAD_TIMEOUT, false},
	    {"offered", SERIES_LINE, 6, TIME_OFFERED, false}}},
    {"Goodput over time", "served per second",
	"The served part of the chart above on its own scale: how much is lost under overload, and "
	"how soon the server recovers.",
	130, false, false, true, format_rate, {{"served", SERIES_LINE, 0, TIME_SERVED, false}}},
    {"Latency over time", "latency (logarithmic)",
	"Of served requests, from the time at which each was due.", 190, false, true, false,
	format_time,
	{{"p99", SERIES_LINE, 1, TIME_P99, true}, {"p50", SERIES_LINE, 0, TIME_P50, false}}},
    {"Requests in flight", "count", "At the end of each second, as counted by the client.", 130,
	false, false, false, format_count,
	{{"in flight", SERIES_LINE, 0, TIME_IN_FLIGHT, true},
	    {"connections", SERIES_LINE, 3, TIME_CONNECTIONS, true}}},
#define TIME_SERVER_CHART(id, heading, unit)                                                       \
	[4 + SERVER_##id] = {heading, unit, "Read from the server once a second", 150, false,      \
	    SERVER_##id == SERVER_WAIT_P99, false,                                                 \
	    SERVER_##id == SERVER_WAIT_P99 ? format_time : format_count, {{0}}},
    SERVER_SERIES(TIME_SERVER_CHART)
#undef TIME_SERVER_CHART
};

/* `n` bins of `per` samples each. */
struct bins {
	int n, per;
};

static struct bins bins_for(size_t n)
{
	int per = (int)((n + TIME_BINS_MAX - 1) / TIME_BINS_MAX);

	per = per > 0 ? per : 1;
	return (struct bins){((int)n + per - 1) / per, per};
}

/* ---- the common axis ---- */

bool chart_decision_shown(const struct rundata *run, const struct server_decision *d)
{
	return d->at_s >= 0 && d->at_s <= (double)run->result.took_ns / 1e9;
}

static void add_pins(
    struct chart *c, const struct rundata *run, const struct server_view *view, bool numbered)
{
	char text[96];
	int number = 0;

	for (int i = 0; i < view->n_decisions; i++) {
		const struct server_decision *d = &view->decision[i];
		if (!chart_decision_shown(run, d))
			continue;
		int n = snprintf(text, sizeof(text), "%.40s: %.24s", d->stage, d->action);
		if (d->from != d->to)
			snprintf(text + n, sizeof(text) - (size_t)n, " %lld \xE2\x86\x92 %lld",
			    d->from, d->to);
		number++;
		chart_pin(c, d->at_s, numbered ? number : 0, text);
	}
}

static const char *band_name(const struct rundata *run, int i)
{
	const struct load_phase *p = &run->plan.phase[i];

	if (p->warmup)
		return p->name; /* "warm-up", or the name of a search trial that does not count */
	if (p->from_per_s <= 0 && !run->plan.closed)
		return "pause";
	return run->point_of[i] >= 0 ? run->point[run->point_of[i]].name : p->name;
}

/* ---- client side ---- */

/* Return the middle of bin `k`, in seconds since the start of the run. */
static double bin_at(const struct load_result *r, struct bins bins, int k)
{
	size_t first = (size_t)k * (size_t)bins.per, last = first + (size_t)bins.per - 1;

	if (last >= r->n_seconds)
		last = r->n_seconds - 1;
	return (double)(r->second[first].at_ns + r->second[last].at_ns) / 2e9 + 0.5;
}

static double seconds(int64_t ns)
{
	return ns > 0 ? (double)ns / 1e9 : NAN;
}

/* Return the value with index `value` (an outcome or TIME_...) in one second; NAN if unknown. */
static double value_of(const struct load_second *s, int value)
{
	const double of[] = {
	    [LOAD_TIMEOUT] = (double)(s->all.outcome[LOAD_TIMEOUT] + s->all.outcome[LOAD_GONE]),
	    [TIME_OFFERED] = (double)s->all.offered,
	    [TIME_SERVED] = (double)run_good(s->all.outcome),
	    [TIME_P50] = seconds(s->all.p50_ns),
	    [TIME_P99] = seconds(s->all.p99_ns),
	    [TIME_IN_FLIGHT] = (double)s->in_flight,
	    [TIME_CONNECTIONS] = (double)s->connections,
	};

	if (value < LOAD_N_OUTCOMES && value != LOAD_TIMEOUT)
		return (double)s->all.outcome[value];
	return of[value];
}

/* Return the mean over the seconds in bin `k`, or the maximum. */
static double bin_value(
    const struct load_result *r, struct bins bins, int k, const struct time_line *line)
{
	size_t from = (size_t)k * (size_t)bins.per, n = 0;
	double sum = 0, max = NAN;

	for (size_t i = from; i < from + (size_t)bins.per && i < r->n_seconds; i++) {
		double v = value_of(&r->second[i], line->value);
		if (isnan(v))
			continue;
		sum += v;
		max = fmax(max, v);
		n++;
	}
	return n == 0 ? NAN : line->worst ? max : sum / (double)n;
}

/* Add a line, or an area on top of `below`, which is NULL for the lowest. An area that is empty
 * everywhere is left out. Returns the top area. */
static const struct series *add_line(struct chart *c, const struct load_result *r,
    const struct time_line *line, const struct series *below)
{
	struct bins bins = bins_for(r->n_seconds);
	struct series *s = chart_series(c, line->name, line->shape, line->style, bins.n, false);
	double sum = 0;

	for (int k = 0; s && k < bins.n; k++) {
		double v = bin_value(r, bins, k, line);
		s->x[k] = bin_at(r, bins, k);
		s->y[k] = s->base && below ? below->y[k] + v : v;
		if (s->base)
			s->base[k] = below ? below->y[k] : 0;
		sum += v;
	}
	if (!s || !s->base || sum > 0 || !below)
		return s;
	chart_drop(c);
	return below;
}

/* ---- stages ---- */

static void add_stage(
    struct chart *c, const struct server_view *view, int stage, enum server_series which)
{
	struct bins bins = bins_for((size_t)view->n);
	struct series *s = chart_series(
	    c, view->stage[stage].name, SERIES_LINE, stage % CHART_STYLES, bins.n, false);

	for (int k = 0; s && k < bins.n; k++) {
		s->x[k] = view->at_s[k * bins.per];
		s->y[k] = NAN;
		for (int i = k * bins.per; i < (k + 1) * bins.per && i < view->n; i++)
			s->y[k] = fmax(s->y[k], view->stage[stage].value[which][i]);
	}
}

/* Add the TIME_STAGES stages with the greatest peaks. A stage is added if its rank is below that
 * number. Its rank is the number of stages with a greater peak, plus the number of earlier stages
 * with the same peak. */
static void add_stages(struct chart *c, const struct server_view *view, enum server_series which)
{
	for (int s = 0; s < view->n_stages; s++) {
		double peak = view->stage[s].peak[which];
		int rank = 0;
		for (int i = 0; i < view->n_stages; i++)
			rank += view->stage[i].peak[which] > peak ||
				(i < s && view->stage[i].peak[which] == peak);
		if (peak > (which == SERVER_WAIT_P99 ? TIME_NO_WAIT_S : 0) && rank < TIME_STAGES)
			add_stage(c, view, s, which);
	}
	/* the server may be sampled less often than once a second */
	c->gap = 0;
}

/* ---- the whole ---- */

static const char *more_about(const struct chart *c, const struct server_view *view, int which)
{
	if (which >= 4)
		return view->n_stages > TIME_STAGES
			   ? "; only the stages with the highest peaks are shown."
			   : ".";
	return which == 0 && c->n_pins > 0
		   ? " Numbered flags are decisions of the server, listed below."
		   : "";
}

struct chart *chart_by_time(const struct rundata *run, const struct server_view *view, int which)
{
	const struct time_chart *t = &time_charts[which];
	struct chart *c = chart_new(t->title, "seconds since the start of the run", t->y_name);
	const struct series *below = NULL;

	if (!c)
		return NULL;
	c->x = scale_exact((double)run->result.took_ns / 1e9);
	c->print_x = format_clock;
	c->print_y = t->print;
	c->height_px = t->height_px;
	c->gap = 1.5 + bins_for(run->result.n_seconds).per;
	for (int i = 0; i < run->plan.n_phases; i++)
		chart_band(c, run->phase_at_s[i],
		    run->phase_at_s[i] + (double)run->result.phase[i].took_ns / 1e9,
		    band_name(run, i));
	add_pins(c, run, view, t->numbered);
	for (int i = 0; i < TIME_LINES && t->line[i].name; i++)
		below = add_line(c, &run->result, &t->line[i], below);
	if (which >= 4)
		add_stages(c, view, (enum server_series)(which - 4));
	snprintf(c->about, sizeof(c->about), "%s%s", t->about, more_about(c, view, which));
	if (t->log)
		c->y = chart_log_y(c, 1);
	else
		c->y = scale_linear(fmax(chart_max_y(c), t->capacity ? run->capacity_per_s : 0));
	if (t->capacity && run->capacity_per_s > 0)
		chart_rule(c, false, run->capacity_per_s, "capacity");
	return c;
}
