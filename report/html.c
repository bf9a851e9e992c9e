/* SPDX-License-Identifier: MIT */
/*
 * Writes the page: first the results of all runs, then each run over time with its tables, and
 * finally the origins of the runs.
 *
 * If memory runs out for any chart, the whole page fails, since readers could not see that a chart
 * is missing.
 */
#include "report/html.h"

#include <math.h>
#include <string.h>

#include "report/charts.h"
#include "report/html_parts.h"

struct page {
	struct html_page to;
	const struct rundata *run;
	int n_runs;
	bool force;
};

/* ---- verdicts and comparisons ---- */

static const char *page_level(const char *verdict)
{
	static const char *const level[][2] = {
	    {"better", "ok"}, {"worse", "bad"}, {"mixed", "warn"}};

	for (int i = 0; i < 3; i++)
		if (strcmp(verdict, level[i][0]) == 0)
			return level[i][1];
	return "plain";
}

/* Write the comparison of run `i` with the first run, as a table if `table` is set, otherwise as a
 * sentence. */
static void page_compare(struct page *p, int i, bool table)
{
	struct comparison c;
	struct weir_err err = {0};
	const char *level;
	char text[800];
	int rc = compare_runs(&p->run[0], &p->run[i], p->force, &c, &err);

	if (rc == WEIR_ENOMEM) {
		p->to.failed = true;
	} else if (rc != 0) {
		snprintf(text, sizeof(text), "cannot be compared: %s", err.text);
		html_verdict(p->to.out, "warn", p->run[i].name, text);
	} else if (table) {
		html_comparison(p->to.out, &c);
		compare_fini(&c);
	} else {
		size_t n = strlen(compare_sentence(&c, text, sizeof(text)));
		text[n++] = ' ';
		html_run_sentence(&p->run[i], text + n, sizeof(text) - n, &level);
		html_verdict(p->to.out, page_level(compare_verdict(&c)), p->run[i].name, text);
		compare_fini(&c);
	}
}

static void page_verdicts(struct page *p)
{
	const struct rundata *run = p->run;
	bool one = p->n_runs == 1;
	char text[400];
	const char *level;

	markup(p->to.out, "<h1>%s</h1>\n", one ? run->name : "Load runs compared");
	for (int i = 0; i < p->n_runs; i++) {
		snprintf(
		    text, sizeof(text), "is VOID and does not count: %s", run[i].result.voided);
		if (run[i].result.voided[0])
			html_verdict(p->to.out, "void", run[i].name, text);
	}
	html_run_sentence(run, text, sizeof(text), &level);
	html_verdict(p->to.out, one ? level : "plain", one ? "" : run->name, text);
	for (int i = 1; i < p->n_runs; i++)
		page_compare(p, i, false);
	if (one)
		html_summary(p->to.out, run);
	else
		html_summary_table(p->to.out, run, p->n_runs);
}

static void page_comparisons(struct page *p)
{
	if (p->n_runs == 1)
		return;
	markup(p->to.out,
	    "<section><h2>Compared with %s</h2>\n<p class=soft>Ratios of medians, with 95&nbsp;%% "
	    "intervals. A verdict needs an interval that excludes equality and a difference worth "
	    "naming. pt: percentage points.</p>\n",
	    p->run[0].name);
	for (int i = 1; i < p->n_runs; i++) {
		markup(p->to.out, "<h3>%s</h3>\n", p->run[i].name);
		page_compare(p, i, true);
	}
	fputs("</section>\n", p->to.out);
}

/* ---- charts ---- */

/* Whether class `c` of the first run has the same name in all runs. */
static bool page_same_class(const struct page *p, int c)
{
	for (int i = 1; i < p->n_runs; i++)
		if (c >= p->run[i].plan.n_classes ||
		    strcmp(p->run[i].plan.class[c].name, p->run->plan.class[c].name) != 0)
			return false;
	return true;
}

static void page_load(struct page *p)
{
	static const enum run_metric metric[] = {RUN_P99, RUN_P50};
	int most = 0;

	for (int i = 0; i < p->n_runs; i++)
		most = p->run[i].n_points > most ? p->run[i].n_points : most;
	if (most < 2)
		return; /* a curve needs at least two loads */
	fputs("<section><h2>Under load</h2>\n", p->to.out);
	html_chart(&p->to, chart_by_load(p->run, p->n_runs, RUN_GOODPUT));
	if (p->n_runs == 1)
		html_chart(&p->to, chart_served(p->run, 1, -1));
	for (int c = 0; p->n_runs > 1 && c < p->run->plan.n_classes; c++)
		if (page_same_class(p, c))
			html_chart(&p->to, chart_served(p->run, p->n_runs, c));
	for (int i = 0; i < (p->n_runs == 1 ? 1 : 2); i++)
		html_chart(&p->to, chart_by_load(p->run, p->n_runs, metric[i]));
	fputs("</section>\n", p->to.out);
}

/* Return the load point that is nearest to the capacity of the run, or the middle one if no point
 * is within 20 % of the capacity. */
static int page_knee(const struct rundata *run)
{
	int best = run->n_points / 2;
	double least = 0.2;

	for (int i = 0; i < run->n_points; i++) {
		double off = fabs(run->point[i].multiple - 1);
		if (run->point[i].multiple > 0 && off < least) {
			least = off;
			best = i;
		}
	}
	return best;
}

/* Write the charts of percentiles. A single run has one chart with several loads. For several runs,
 * there is one chart at the lowest load, one at the capacity and one at the highest load. */
static void page_tail(struct page *p)
{
	int n = p->run[0].n_points;
	int point[] = {p->n_runs == 1 ? -1 : 0, page_knee(p->run), n - 1};

	if (n == 0)
		return;
	fputs("<section><h2>Percentiles</h2>\n<div class=grid>\n", p->to.out);
	for (int i = 0; i < (p->n_runs == 1 ? 1 : 3); i++)
		if (i == 0 || (point[i] > point[i - 1] && (i == 2 || point[i] < n - 1)))
			html_chart(&p->to, chart_tail(p->run, p->n_runs, point[i]));
	fputs("</div>\n</section>\n", p->to.out);
}

static void page_time(struct page *p, const struct rundata *run)
{
	struct server_view view;

	if (server_view_init(&view, run->json) != 0) {
		p->to.failed = true;
		return;
	}
	markup(p->to.out, "<section><h2>Over time: %s</h2>\n", run->name);
	for (int i = 0; i < CHARTS_BY_TIME; i++)
		html_chart(&p->to, chart_by_time(run, &view, i));
	if (view.n == 0)
		fputs("<p class=soft>The server's side was not recorded.</p>\n", p->to.out);
	html_decisions(p->to.out, run, &view);
	fputs("<h3>Classes</h3>\n", p->to.out);
	if (html_classes(p->to.out, run) != 0)
		p->to.failed = true;
	fputs("</section>\n", p->to.out);
	server_view_fini(&view);
}

int report_html(const struct rundata *run, int n_runs, bool force, FILE *out)
{
	struct page p = {.to = {.out = out}, .run = run, .n_runs = n_runs, .force = force};
	char title[160];

	int n = snprintf(title, sizeof(title), "%s", run->name);
	if (n_runs > 1)
		snprintf(title + n, sizeof(title) - (size_t)n, " and %d more", n_runs - 1);
	html_begin(out, title, "load report", true, "");
	page_verdicts(&p);
	page_load(&p);
	page_comparisons(&p);
	page_tail(&p);
	for (int i = 0; i < n_runs; i++)
		page_time(&p, &run[i]);
	fputs("<section><h2>Where this comes from</h2>\n<div class=grid>\n", out);
	for (int i = 0; i < n_runs; i++) {
		markup(out, "<div class=card><h3>%s</h3>", run[i].name);
		html_about(out, &run[i]);
		fputs("</div>\n", out);
	}
	fputs("</div>\n</section>\n</main><div id=read hidden></div>\n<script>\n", out);
	fputs(html_script, out);
	fputs("</script></body></html>\n", out);
	return p.to.failed ? WEIR_ENOMEM : 0;
}
