/* SPDX-License-Identifier: MIT */
/*
 * Writes the page: first the results of all runs, then each run over time with its tables, and
 * finally the origins of the runs.
 *
 * If memory runs out for any chart, the whole page fails, since readers could not see that a chart
 * is missing.
 */
#include "report/html.h"

#include <string.h>

#include "report/charts.h"
#include "report/html_parts.h"

/* Content security policy: only the page's own style and script, nothing from elsewhere. */
#define HTML_POLICY                                                                                \
	"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src "      \
	"data:; "                                                                                  \
	"base-uri 'none'; form-action 'none'"

struct page {
	FILE *out;
	const struct rundata *run;
	int n_runs;
	bool force, failed;
	int figures; /* number of figures so far, used in their ids */
};

/* Draw a chart, unless it is empty, and free it. */
static void page_chart(struct page *p, struct chart *c)
{
	char id[16];

	p->failed = p->failed || !c || c->failed;
	if (c && !c->failed && chart_has_values(c)) {
		snprintf(id, sizeof(id), "f%d", ++p->figures);
		svg_chart(p->out, c, id);
	}
	chart_free(c);
}

static void page_section(struct page *p, const char *title, const char *of)
{
	fputs("<section><h2>", p->out);
	markup_text(p->out, title);
	markup_text(p->out, of);
	fputs("</h2>\n", p->out);
}

static void page_section_end(struct page *p)
{
	fputs("</section>\n", p->out);
}

/* ---- head ---- */

static void page_head(struct page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
	      "<meta http-equiv=Content-Security-Policy content=\"" HTML_POLICY "\">\n"
	      "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
	      "<meta name=referrer content=no-referrer>\n"
	      "<link rel=icon href='data:,'>\n<title>",
	    p->out);
	markup_text(p->out, p->run[0].name);
	if (p->n_runs > 1)
		fprintf(p->out, " and %d more", p->n_runs - 1);
	fputs(" \xE2\x80\x93 weir load report</title>\n<style>\n", p->out);
	fputs(html_style, p->out);
	fputs("</style></head><body>\n", p->out);
	svg_definitions(p->out);
	fputs("<header><p class=brand>weir <span>load report</span></p></header><main>\n", p->out);
}

static void page_verdict(struct page *p, const char *level, const char *of, const char *text)
{
	fprintf(p->out, "<p class='verdict %s'><span>", level);
	if (*of) {
		fputs("<b>", p->out);
		markup_text(p->out, of);
		fputs("</b> ", p->out);
	}
	markup_text(p->out, text);
	fputs("</span></p>\n", p->out);
}

static void page_voids(struct page *p)
{
	char text[320];

	for (int i = 0; i < p->n_runs; i++) {
		if (!p->run[i].result.voided[0])
			continue;
		snprintf(
		    text, sizeof(text), "is VOID and must not count: %s", p->run[i].result.voided);
		page_verdict(p, "void", p->run[i].name, text);
	}
}

/* ---- comparison ---- */

static const char *page_level(const char *verdict)
{
	if (strcmp(verdict, "better") == 0)
		return "ok";
	if (strcmp(verdict, "worse") == 0)
		return "bad";
	return strcmp(verdict, "mixed") == 0 ? "warn" : "plain";
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
		p->failed = true;
		return;
	}
	if (rc != 0) {
		snprintf(text, sizeof(text), "cannot be compared: %s", err.text);
		page_verdict(p, "warn", p->run[i].name, text);
		return;
	}
	if (table) {
		html_comparison(p->out, &c);
	} else {
		size_t n = strlen(compare_sentence(&c, text, sizeof(text)));
		text[n++] = ' ';
		html_run_sentence(&p->run[i], text + n, sizeof(text) - n, &level);
		page_verdict(p, page_level(compare_verdict(&c)), p->run[i].name, text);
	}
	compare_fini(&c);
}

static void page_verdicts(struct page *p)
{
	char text[400];
	const char *level;

	fputs("<h1>", p->out);
	if (p->n_runs == 1)
		markup_text(p->out, p->run[0].name);
	else
		fputs("Load runs compared", p->out);
	fputs("</h1>\n", p->out);
	page_voids(p);
	html_run_sentence(&p->run[0], text, sizeof(text), &level);
	page_verdict(
	    p, p->n_runs == 1 ? level : "plain", p->n_runs == 1 ? "" : p->run[0].name, text);
	for (int i = 1; i < p->n_runs; i++)
		page_compare(p, i, false);
	html_summary_table(p->out, p->run, p->n_runs);
}

static void page_comparisons(struct page *p)
{
	if (p->n_runs == 1)
		return;
	page_section(p, "Compared with ", p->run[0].name);
	fputs("<p class=soft>Ratios of medians, with 95&nbsp;% intervals. A verdict needs an "
	      "interval that excludes equality and a difference worth naming. pt: percentage "
	      "points.</p>\n",
	    p->out);
	for (int i = 1; i < p->n_runs; i++) {
		fputs("<h3>", p->out);
		markup_text(p->out, p->run[i].name);
		fputs("</h3>\n", p->out);
		page_compare(p, i, true);
	}
	page_section_end(p);
}

/* ---- charts ---- */

static int most_points(const struct page *p)
{
	int most = 0;

	for (int i = 0; i < p->n_runs; i++)
		most = p->run[i].n_points > most ? p->run[i].n_points : most;
	return most;
}

static void page_load(struct page *p)
{
	if (most_points(p) < 2)
		return; /* a curve needs at least two loads */
	page_section(p, "Under load", "");
	page_chart(p, chart_goodput(p->run, p->n_runs));
	if (p->n_runs == 1) {
		page_chart(p, chart_quantiles_by_load(p->run));
	} else {
		page_chart(
		    p, chart_by_load(p->run, p->n_runs, RUN_P99, "p99 against offered load"));
		page_chart(
		    p, chart_by_load(p->run, p->n_runs, RUN_P50, "p50 against offered load"));
	}
	page_section_end(p);
}

/* Return the load point that is nearest to the capacity of the run, or the middle one if no point
 * is within 20 % of the capacity. */
static int page_knee(const struct rundata *run)
{
	int best = run->n_points / 2;
	double least = 0.2;

	for (int i = 0; i < run->n_points; i++) {
		double off = run->point[i].multiple - 1;
		off = off < 0 ? -off : off;
		if (run->point[i].multiple > 0 && off < least) {
			least = off;
			best = i;
		}
	}
	return best;
}

static void page_tail(struct page *p)
{
	int n = p->run[0].n_points, knee = page_knee(p->run);

	if (n == 0)
		return;
	page_section(p, "Percentiles", "");
	fputs("<div class=grid>\n", p->out);
	if (p->n_runs == 1) {
		page_chart(p, chart_tail(p->run, 1, -1));
	} else {
		page_chart(p, chart_tail(p->run, p->n_runs, 0));
		if (knee > 0 && knee < n - 1)
			page_chart(p, chart_tail(p->run, p->n_runs, knee));
		if (n > 1)
			page_chart(p, chart_tail(p->run, p->n_runs, n - 1));
	}
	fputs("</div>\n", p->out);
	page_section_end(p);
}

static bool has_shown_decision(const struct rundata *run, const struct server_view *view)
{
	for (int i = 0; i < view->n_decisions; i++)
		if (chart_decision_shown(run, &view->decision[i]))
			return true;
	return false;
}

static void page_time(struct page *p, const struct rundata *run)
{
	struct server_view view;

	if (server_view_init(&view, run->json) != 0) {
		p->failed = true;
		return;
	}
	page_section(p, "Over time: ", run->name);
	page_chart(p, chart_outcomes(run, &view));
	page_chart(p, chart_served(run, &view));
	page_chart(p, chart_latency(run, &view));
	page_chart(p, chart_in_flight(run, &view));
	for (int k = 0; k < SERVER_N_SERIES; k++)
		page_chart(p, chart_stages(run, &view, (enum server_series)k));
	if (view.n == 0)
		fputs("<p class=soft>The server's side was not recorded.</p>\n", p->out);
	if (has_shown_decision(run, &view)) {
		fputs("<h3>Decisions of the server</h3>\n", p->out);
		fputs("<div class=decisions>\n", p->out);
		html_decisions(p->out, run, &view);
		fputs("</div>\n", p->out);
	}
	fputs("<h3>Classes</h3>\n", p->out);
	if (html_classes(p->out, run) != 0)
		p->failed = true;
	page_section_end(p);
	server_view_fini(&view);
}

static void page_origins(struct page *p)
{
	page_section(p, "Where this comes from", "");
	fputs("<div class=grid>\n", p->out);
	for (int i = 0; i < p->n_runs; i++) {
		fputs("<div class=card><h3>", p->out);
		markup_text(p->out, p->run[i].name);
		fputs("</h3>", p->out);
		html_about(p->out, &p->run[i]);
		fputs("</div>\n", p->out);
	}
	fputs("</div>\n", p->out);
	page_section_end(p);
}

int report_html(const struct rundata *run, int n_runs, bool force, FILE *out)
{
	struct page p = {.out = out, .run = run, .n_runs = n_runs, .force = force};

	page_head(&p);
	page_verdicts(&p);
	page_load(&p);
	page_comparisons(&p);
	page_tail(&p);
	for (int i = 0; i < n_runs; i++)
		page_time(&p, &run[i]);
	page_origins(&p);
	fputs("</main><div id=read hidden></div>\n<script>\n", out);
	fputs(html_script, out);
	fputs("</script></body></html>\n", out);
	return p.failed ? WEIR_ENOMEM : 0;
}
