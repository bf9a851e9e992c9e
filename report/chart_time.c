/* SPDX-License-Identifier: MIT */
/*
 * Builds charts of one run over time. All have the same time axis, so that the results of the
 * clients line up with the activity of the stages. Long runs are binned. Of most series, the mean
 * over a bin is shown; of the p99 latency, the requests in flight and the data of the stages, its
 * worst second, since that is what readers look for.
 */
#include "report/charts.h"

#include <math.h>
#include <string.h>

/* Maximum number of bins along the axis: more bins would be narrower than a pixel. */
#define TIME_BINS_MAX 400
/* Maximum number of stages in a chart. */
#define TIME_STAGES CHART_STYLES
/* Greatest wait that counts as none: at stages without a queue, all waits are in the first bucket
 * of the server's histogram. */
#define TIME_NO_WAIT_S 1.5e-6

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

/* ---- decisions ---- */

bool chart_decision_shown(const struct rundata *run, const struct server_decision *d)
{
	return d->at_s >= 0 && d->at_s <= (double)run->result.took_ns / 1e9;
}

char *chart_decision_text(const struct server_decision *d, char *buf, size_t size)
{
	if (d->from != d->to)
		snprintf(buf, size, "%.40s: %.24s %lld \xE2\x86\x92 %lld", d->stage, d->action,
		    d->from, d->to);
	else
		snprintf(buf, size, "%.40s: %.24s", d->stage, d->action);
	return buf;
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
		number++;
		chart_pin(
		    c, d->at_s, numbered ? number : 0, chart_decision_text(d, text, sizeof(text)));
	}
}

/* ---- the common axis ---- */

static const char *band_name(const struct rundata *run, int i)
{
	const struct load_phase *p = &run->plan.phase[i];

	if (p->warmup)
		return p->name; /* "warm-up", or the name of a search trial that does not count */
	if (p->from_per_s <= 0 && !run->plan.closed)
		return "pause";
	return run->point_of[i] >= 0 ? run->point[run->point_of[i]].name : p->name;
}

static void add_bands(struct chart *c, const struct rundata *run)
{
	for (int i = 0; i < run->plan.n_phases; i++) {
		double at = run->phase_at_s[i];
		chart_band(
		    c, at, at + (double)run->result.phase[i].took_ns / 1e9, band_name(run, i));
	}
}

static struct chart *time_chart(const struct rundata *run, const struct server_view *view,
    const char *title, const char *y_name, bool numbered)
{
	struct chart *c = chart_new(title, "seconds since the start of the run", y_name);

	if (!c)
		return NULL;
	c->x = scale_exact((double)run->result.took_ns / 1e9);
	c->print_x = format_clock;
	c->height_px = 190;
	c->gap = 1.5 + bins_for(run->result.n_seconds).per;
	add_bands(c, run);
	add_pins(c, run, view, numbered);
	return c;
}

/* Return the middle of bin `k`, in seconds since the start of the run. */
static double bin_at(const struct rundata *run, struct bins bins, int k)
{
	size_t first = (size_t)k * (size_t)bins.per, last = first + (size_t)bins.per - 1;

	if (last >= run->result.n_seconds)
		last = run->result.n_seconds - 1;
	return (double)(run->result.second[first].at_ns + run->result.second[last].at_ns) / 2e9 +
	       0.5;
}

/* Returns a metric of one second; NAN if unknown. */
typedef double second_fn(const struct load_second *s, int arg);

static double second_offered(const struct load_second *s, int arg)
{
	(void)arg;
	return (double)s->all.offered;
}

static double second_served(const struct load_second *s, int arg)
{
	(void)arg;
	return (double)run_good(s->all.outcome);
}

static double second_outcome(const struct load_second *s, int outcome)
{
	return (double)s->all.outcome[outcome] +
	       (outcome == LOAD_TIMEOUT ? (double)s->all.outcome[LOAD_GONE] : 0);
}

static double second_latency(const struct load_second *s, int tail)
{
	int64_t ns = tail ? s->all.p99_ns : s->all.p50_ns;

	return ns > 0 ? (double)ns / 1e9 : NAN;
}

static double second_in_flight(const struct load_second *s, int connections)
{
	return (double)(connections ? s->connections : s->in_flight);
}

/* Return the mean over the seconds in bin `k`, or the maximum if `worst` is set. */
static double bin_value(
    const struct rundata *run, struct bins bins, int k, second_fn *fn, int arg, bool worst)
{
	const struct load_result *r = &run->result;
	size_t from = (size_t)k * (size_t)bins.per, n = 0;
	double sum = 0, max = NAN;

	for (size_t i = from; i < from + (size_t)bins.per && i < r->n_seconds; i++) {
		double v = fn(&r->second[i], arg);
		if (isnan(v))
			continue;
		sum += v;
		max = fmax(max, v);
		n++;
	}
	return n == 0 ? NAN : worst ? max : sum / (double)n;
}

static void add_line(struct chart *c, const struct rundata *run, const char *name, int style,
    second_fn *fn, int arg, bool worst)
{
	struct bins bins = bins_for(run->result.n_seconds);
	struct series *s = chart_series(c, name, SERIES_LINE, style, bins.n, false);

	for (int k = 0; s && k < bins.n; k++) {
		s->x[k] = bin_at(run, bins, k);
		s->y[k] = bin_value(run, bins, k, fn, arg, worst);
	}
}

/* ---- client side ---- */

/* Add the area of one outcome on top of `below`, or on the axis if `below` is NULL. Returns the new
 * top series, or `below` if the outcome never occurred. */
static const struct series *add_outcome(struct chart *c, const struct rundata *run,
    const char *name, enum series_fill fill, int outcome, const struct series *below)
{
	struct bins bins = bins_for(run->result.n_seconds);
	struct series *s = chart_series(c, name, SERIES_AREA, (int)fill, bins.n, false);
	double sum = 0;

	for (int k = 0; s && k < bins.n; k++) {
		double v = bin_value(run, bins, k, second_outcome, outcome, false);
		s->x[k] = bin_at(run, bins, k);
		s->base[k] = below ? below->y[k] : 0;
		s->y[k] = s->base[k] + v;
		sum += v;
	}
	if (!s || sum > 0 || outcome == LOAD_OK)
		return s;
	s->name[0] = '\0'; /* an empty name marks the series for removal */
	return below;
}

/* Remove the series that add_outcome marked as empty. */
static void drop_empty(struct chart *c)
{
	int kept = 0;

	for (int i = 0; i < c->n_series; i++) {
		struct series s = c->series[i];
		if (s.name[0] != '\0')
			c->series[kept++] = s;
		else
			chart_series_fini(&s);
	}
	c->n_series = kept;
}

struct chart *chart_outcomes(const struct rundata *run, const struct server_view *view)
{
	struct chart *c =
	    time_chart(run, view, "What was asked and what came back", "requests per second", true);
	const struct series *top = NULL;

	if (!c)
		return NULL;
	snprintf(c->about, sizeof(c->about),
	    "Stacked by outcome in the second of the answer; the line is what was offered.%s",
	    c->n_pins > 0 ? " Numbered flags are decisions of the server, listed below." : "");
	c->height_px = 240;
	top = add_outcome(c, run, "ok", FILL_OK, LOAD_OK, top);
	top = add_outcome(c, run, "degraded", FILL_DEGRADED, LOAD_DEGRADED, top);
	top = add_outcome(c, run, "shed", FILL_SHED, LOAD_SHED, top);
	top = add_outcome(c, run, "error", FILL_ERROR, LOAD_ERROR, top);
	add_outcome(c, run, "timeout or gone", FILL_TIMEOUT, LOAD_TIMEOUT, top);
	drop_empty(c);
	add_line(c, run, "offered", 6, second_offered, 0, false);
	c->y = scale_linear(chart_max_y(c));
	c->print_y = format_rate;
	return c;
}

struct chart *chart_served(const struct rundata *run, const struct server_view *view)
{
	struct chart *c = time_chart(run, view, "Goodput over time", "served per second", false);

	if (!c)
		return NULL;
	snprintf(c->about, sizeof(c->about),
	    "The served part of the chart above on a scale of its own: what overload takes away, "
	    "and how soon it comes back.");
	c->height_px = 130;
	add_line(c, run, "served", 0, second_served, 0, false);
	c->y = scale_linear(fmax(chart_max_y(c), run->capacity_per_s));
	c->print_y = format_rate;
	if (run->capacity_per_s > 0)
		chart_rule(c, false, run->capacity_per_s, "capacity");
	return c;
}

struct chart *chart_latency(const struct rundata *run, const struct server_view *view)
{
	struct chart *c =
	    time_chart(run, view, "Latency over time", "latency (logarithmic)", false);

	if (!c)
		return NULL;
	snprintf(
	    c->about, sizeof(c->about), "Of served requests, from the time at which each was due.");
	add_line(c, run, "p99", 1, second_latency, 1, true);
	add_line(c, run, "p50", 0, second_latency, 0, false);
	c->y = scale_log(chart_min_y(c), chart_max_y(c));
	c->print_y = format_time;
	return c;
}

struct chart *chart_in_flight(const struct rundata *run, const struct server_view *view)
{
	struct chart *c = time_chart(run, view, "Requests under way", "count", false);

	if (!c)
		return NULL;
	snprintf(c->about, sizeof(c->about), "At the end of each second, on the client's side.");
	c->height_px = 130;
	add_line(c, run, "under way", 0, second_in_flight, 0, true);
	add_line(c, run, "connections", 3, second_in_flight, 1, true);
	c->y = scale_linear(chart_max_y(c));
	return c;
}

/* ---- stages ---- */

static void add_stage(struct chart *c, const struct server_view *view,
    const struct server_stage *stage, enum server_series which, int style)
{
	struct bins bins = bins_for((size_t)view->n);
	struct series *s = chart_series(c, stage->name, SERIES_LINE, style, bins.n, false);

	for (int k = 0; s && k < bins.n; k++) {
		s->x[k] = view->at_s[k * bins.per];
		s->y[k] = NAN;
		for (int i = k * bins.per; i < (k + 1) * bins.per && i < view->n; i++)
			s->y[k] = fmax(s->y[k], stage->value[which][i]);
	}
}

/* Return the rank of a stage by its peak: the number of stages with a greater peak, plus the number
 * of earlier stages with the same peak. */
static int stage_rank(const struct server_view *view, int stage, enum server_series which)
{
	double peak = view->stage[stage].peak[which];
	int rank = 0;

	for (int s = 0; s < view->n_stages; s++)
		rank += view->stage[s].peak[which] > peak ||
			(s < stage && view->stage[s].peak[which] == peak);
	return rank;
}

struct chart *chart_stages(
    const struct rundata *run, const struct server_view *view, enum server_series which)
{
#define CHART_STAGES_TEXT(id, heading, unit) {heading, unit},
	static const struct {
		const char *heading, *unit;
	} text[] = {SERVER_SERIES(CHART_STAGES_TEXT)};
#undef CHART_STAGES_TEXT
	struct chart *c = time_chart(run, view, text[which].heading, text[which].unit, false);

	if (!c)
		return NULL;
	double none = which == SERVER_WAIT_P99 ? TIME_NO_WAIT_S : 0;
	c->height_px = 150;
	c->gap = 0; /* the server may be sampled less often than once a second */
	for (int s = 0; s < view->n_stages; s++)
		if (view->stage[s].peak[which] > none && stage_rank(view, s, which) < TIME_STAGES)
			add_stage(c, view, &view->stage[s], which, s % CHART_STYLES);
	snprintf(c->about, sizeof(c->about), "Said by the server about once a second%s.",
	    view->n_stages > TIME_STAGES ? "; of its stages those with the highest peaks" : "");
	c->y = scale_linear(chart_max_y(c));
	if (which == SERVER_WAIT_P99) {
		c->y = scale_log(chart_min_y(c), chart_max_y(c));
		c->print_y = format_time;
	}
	return c;
}
