/* SPDX-License-Identifier: MIT */
/* Writes comparisons, classes, decisions and origins as tables; see html_parts.h. */
#include "report/html_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/charts.h"

/* ---- comparison ---- */

/* Verdicts differ by word and shape, not only by colour. */
static const struct {
	const char *css, *mark;
} verdicts[] = {
    [STATS_BETTER] = {"better", "\xE2\x96\xB2"},
    [STATS_WORSE] = {"worse", "\xE2\x96\xBC"},
    [STATS_NOISE] = {"noise", "="},
    [STATS_TOO_FEW] = {"few", "?"},
};

static void comparison_cell(FILE *out, const struct compare_cell *cell, enum run_metric metric)
{
	char ratio[FORMAT_MAX], a[FORMAT_MAX], b[FORMAT_MAX], interval[64];
	const struct stats_ratio *r = &cell->ratio;

	if (!cell->known) {
		fputs("<td class=absent>\xE2\x80\x93", out);
		return;
	}
	fprintf(out, "<td class=%s>", verdicts[r->verdict].css);
	if (compare_is_share(metric))
		fprintf(out, "<b>%+.1f pt</b>", (cell->b - cell->a) * 100);
	else
		fprintf(out, "<b>%s</b>", format_ratio(ratio, r->ratio));
	fprintf(out, " <span class=mark>%s %s</span><br><small>", verdicts[r->verdict].mark,
	    compare_word(r));
	markup_text(out, compare_format[metric](a, cell->a));
	fputs(" \xE2\x86\x92 ", out);
	markup_text(out, compare_format[metric](b, cell->b));
	if (*compare_interval(cell, metric, interval, sizeof(interval)))
		fprintf(out, "<br>95&nbsp;%%: %s", interval);
	fputs("</small>", out);
}

void html_comparison(FILE *out, const struct comparison *c)
{
	const char *heading[RUN_N_METRICS + 1] = {"Load"};
	char caption[240];

	for (int m = 0; m < RUN_N_METRICS; m++)
		heading[m + 1] = run_metric[m].heading;
	snprintf(caption, sizeof(caption), "%s against the baseline %s", c->b->name, c->a->name);
	html_table(out, caption, heading, RUN_N_METRICS + 1);
	for (int i = 0; i < c->n; i++) {
		html_row(out, c->row[i].name);
		fprintf(out, "<br><small>%s</small>", c->row[i].paired ? "in pairs" : "unpaired");
		for (int m = 0; m < RUN_N_METRICS; m++)
			comparison_cell(out, &c->row[i].cell[m], (enum run_metric)m);
		fputs("\n", out);
	}
	html_table_end(out);
	fputs("<ul class=notes>", out);
	for (int i = 0; compare_note(c, i); i++) {
		fputs("<li>", out);
		markup_text(out, compare_note(c, i));
	}
	fputs("</ul>\n", out);
}

/* ---- classes ---- */

/* Totals of one class over all rounds of a point. */
struct class_sum {
	double offered, outcome[LOAD_N_OUTCOMES], took_s;
};

static struct class_sum sum_class(const struct rundata *run, int point, int class_id)
{
	struct class_sum sum = {0};

	for (int i = 0; i < run->plan.n_phases; i++) {
		const struct load_class_result *c = &run->result.phase[i].class[class_id];
		if (run->point_of[i] != point)
			continue;
		sum.offered += (double)c->offered;
		sum.took_s += (double)run->result.phase[i].took_ns / 1e9;
		for (int k = 0; k < LOAD_N_OUTCOMES; k++)
			sum.outcome[k] += (double)c->outcome[k];
	}
	return sum;
}

static void class_row(FILE *out, const struct rundata *run, int point, int class_id, struct hdr *h)
{
	struct class_sum sum = sum_class(run, point, class_id);
	static const double quantile[] = {0.5, 0.99, 0.999};

	html_row(out, run->point[point].name);
	html_cell(out, run->plan.class[class_id].name);
	html_cell_value(out, format_rate, sum.offered / sum.took_s);
	html_cell_value(
	    out, format_rate, (sum.outcome[LOAD_OK] + sum.outcome[LOAD_DEGRADED]) / sum.took_s);
	for (int k = 0; k < LOAD_N_OUTCOMES; k++)
		html_cell_value(
		    out, format_share, sum.offered > 0 ? sum.outcome[k] / sum.offered : NAN);
	rundata_latency(run, point, class_id, h);
	for (int q = 0; q < 3; q++)
		html_cell_value(out, format_time,
		    h->total ? (double)hdr_quantile_ns(h, quantile[q]) / 1e9 : NAN);
	fputs("\n", out);
}

int html_classes(FILE *out, const struct rundata *run)
{
	const char *heading[LOAD_N_OUTCOMES + 7] = {"Load", "Class", "offered", "served"};
	struct hdr *h = malloc(sizeof(*h));
	int n = 4;

	if (!h)
		return WEIR_ENOMEM;
	for (int k = 0; k < LOAD_N_OUTCOMES; k++)
		heading[n++] = load_outcome_name[k];
	heading[n++] = "p50";
	heading[n++] = "p99";
	heading[n++] = "p99.9";
	html_table(out, "Classes", heading, n);
	for (int p = 0; p < run->n_points; p++)
		for (int c = 0; c < run->plan.n_classes; c++)
			class_row(out, run, p, c, h);
	html_table_end(out);
	free(h);
	return 0;
}

/* ---- decisions ---- */

void html_decisions(FILE *out, const struct rundata *run, const struct server_view *view)
{
	static const char *const heading[] = {
	    "No.", "At", "Stage", "By", "Decision", "Why", "Seen"};
	int number = 0, left_out = 0;
	char text[160];

	html_table(out, "Decisions of the server", heading, 7);
	for (int i = 0; i < view->n_decisions; i++) {
		const struct server_decision *d = &view->decision[i];
		if (!chart_decision_shown(run, d))
			continue;
		if (++number > CHART_PINS_MAX) {
			left_out++;
			continue;
		}
		snprintf(text, sizeof(text), "%d", number);
		html_row(out, text);
		html_cell_value(out, format_clock, round(d->at_s * 100) / 100);
		html_cell(out, d->stage);
		html_cell(out, d->actor);
		snprintf(
		    text, sizeof(text), "%.24s %lld \xE2\x86\x92 %lld", d->action, d->from, d->to);
		html_cell(out, d->from == d->to ? d->action : text);
		html_cell(out, d->rule);
		html_cell(out, d->inputs);
		fputs("\n", out);
	}
	html_table_end(out);
	if (left_out > 0)
		fprintf(out, "<p class=soft>and %d more</p>\n", left_out);
}

/* ---- origin ---- */

static void about_text(FILE *out, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	fprintf(out, "<dt>%s<dd>", name);
	markup_text(out, text);
	fputs("\n", out);
}

static const char *about_member(const json_t *run, const char *object, const char *key)
{
	return json_string_value(json_object_get(object ? json_object_get(run, object) : run, key));
}

static void about_command(FILE *out, const json_t *run)
{
	const json_t *command = json_object_get(run, "command");

	if (json_array_size(command) == 0)
		return;
	fputs("<dt>command<dd><code>", out);
	for (size_t i = 0; i < json_array_size(command); i++) {
		const char *word = json_string_value(json_array_get(command, i));
		fputs(i ? " " : "", out);
		markup_text(out, word ? word : "?");
	}
	fputs("</code>\n", out);
}

static void about_numbers(FILE *out, const struct rundata *run)
{
	const json_t *plan = json_object_get(run->json, "plan");
	char text[FORMAT_MAX];

	fprintf(out, "<dt>clients<dd>at most %d connections, %d threads, time-out ",
	    run->plan.connections, run->plan.threads);
	markup_text(out, format_time(text, (double)run->plan.timeout_ns / 1e9));
	fprintf(out, ", %lld retries\n",
	    (long long)json_integer_value(json_object_get(plan, "retries")));
	fprintf(out, "<dt>generator<dd>CPU %.1f s user, %.1f s system, %llu connections made\n",
	    run->result.cpu_user_s, run->result.cpu_system_s,
	    (unsigned long long)run->result.connects);
	fputs("<dt>length<dd>", out);
	markup_text(out, format_clock(text, (double)run->result.took_ns / 1e9));
	fprintf(out, " in %d phases\n", run->plan.n_phases);
}

void html_about(FILE *out, const struct rundata *run)
{
	const json_t *json = run->json;
	char cores[64];

	snprintf(cores, sizeof(cores), "%lld cores",
	    (long long)json_integer_value(json_object_get(json_object_get(json, "host"), "cores")));
	fputs("<dl>", out);
	about_text(out, "void", run->result.voided);
	about_text(out, "server", run->plan.url);
	about_text(out, "started", about_member(json, NULL, "started"));
	about_command(out, json);
	about_text(out, "loop", about_member(json, NULL, "mode"));
	about_text(out, "arrivals", about_member(json, "plan", "arrivals"));
	about_text(out, "capacity", about_member(json, NULL, "capacity_note"));
	about_numbers(out, run);
	about_text(out, "seed", about_member(json, NULL, "seed"));
	about_text(out, "machine", about_member(json, "host", "cpu"));
	about_text(out, "cores", cores);
	about_text(out, "kernel", about_member(json, "host", "kernel"));
	about_text(out, "weir", about_member(json, "tool", "version"));
	about_text(out, "commit", about_member(json, "tool", "commit"));
	about_text(out, "flags", about_member(json, "tool", "flags"));
	fputs("</dl>\n", out);
}
