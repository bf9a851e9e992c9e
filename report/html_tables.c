/* SPDX-License-Identifier: MIT */
/* Writes comparisons, classes, decisions and origins as tables; see html_parts.h. */
#include "report/html_parts.h"

#include <math.h>
#include <stdlib.h>

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
	if (compare_is_share(metric))
		snprintf(ratio, sizeof(ratio), "%+.1f pt", (cell->b - cell->a) * 100);
	else
		format_ratio(ratio, r->ratio);
	markup(out,
	    "<td class=%s><b>%s</b> <span class=mark>%s %s</span><br><small>%s \xE2\x86\x92 %s",
	    verdicts[r->verdict].css, ratio, verdicts[r->verdict].mark, compare_word(r),
	    compare_format[metric](a, cell->a), compare_format[metric](b, cell->b));
	if (*compare_interval(cell, metric, interval, sizeof(interval)))
		markup(out, "<br>95&nbsp;%%: %s", interval);
	fputs("</small>", out);
}

void html_comparison(FILE *out, const struct comparison *c)
{
	struct html_column column[RUN_N_METRICS + 1] = {{"Load", NULL}};
	char caption[240];

	for (int m = 0; m < RUN_N_METRICS; m++)
		column[m + 1].heading = run_metric[m].heading;
	snprintf(caption, sizeof(caption), "%s against the baseline %s", c->b->name, c->a->name);
	html_table(out, caption, column, RUN_N_METRICS + 1);
	for (int i = 0; i < c->n; i++) {
		html_row(out, c->row[i].name);
		markup(out, "<br><small>%s</small>", c->row[i].paired ? "in pairs" : "unpaired");
		for (int m = 0; m < RUN_N_METRICS; m++)
			comparison_cell(out, &c->row[i].cell[m], (enum run_metric)m);
		fputs("\n", out);
	}
	html_table_end(out);
	fputs("<ul class=notes>", out);
	for (int i = 0; compare_note(c, i); i++)
		markup(out, "<li>%s", compare_note(c, i));
	fputs("</ul>\n", out);
}

/* ---- classes ---- */

/* Columns: the load, the class, rates, shares of the outcomes, percentiles. */
static const struct html_column class_columns[] = {{"Load", NULL}, {"Class", NULL},
    {"offered", format_rate}, {"served", format_rate},
#define CLASS_COLUMN(id, name, meaning) {name, format_share},
    LOAD_OUTCOMES(CLASS_COLUMN)
#undef CLASS_COLUMN
	{"p50", format_time},
    {"p99", format_time}, {"p99.9", format_time}};
#define CLASS_VALUES (LOAD_N_OUTCOMES + 5)

/* Write the row of one class at a load point (rundata.h), over all rounds of the point. */
static void class_row(FILE *out, const struct rundata *run, int point, int class_id, struct hdr *h)
{
	static const double quantile[] = {0.5, 0.99, 0.999};
	double value[CLASS_VALUES] = {0}, took_s = 0, *outcome = value + 2;

	for (int i = 0; i < run->plan.n_phases; i++) {
		const struct load_class_result *c = &run->result.phase[i].class[class_id];
		if (run->point_of[i] != point)
			continue;
		took_s += (double)run->result.phase[i].took_ns / 1e9;
		value[0] += (double)c->offered;
		value[1] += (double)run_good(c->outcome);
		for (int k = 0; k < LOAD_N_OUTCOMES; k++)
			outcome[k] += (double)c->outcome[k];
	}
	for (int k = 0; k < LOAD_N_OUTCOMES; k++)
		outcome[k] = value[0] > 0 ? outcome[k] / value[0] : NAN;
	value[0] /= took_s;
	value[1] /= took_s;
	rundata_latency(run, point, class_id, h);
	for (int q = 0; q < 3; q++)
		outcome[LOAD_N_OUTCOMES + q] =
		    h->total ? (double)hdr_quantile_ns(h, quantile[q]) / 1e9 : NAN;
	html_row(out, run->point[point].name);
	html_cell(out, run->plan.class[class_id].name);
	html_values(out, class_columns + 2, CLASS_VALUES, value);
}

int html_classes(FILE *out, const struct rundata *run)
{
	struct hdr *h = malloc(sizeof(*h));

	if (!h)
		return WEIR_ENOMEM;
	html_table(out, "Classes", class_columns, CLASS_VALUES + 2);
	for (int p = 0; p < run->n_points; p++)
		for (int c = 0; c < run->plan.n_classes; c++)
			class_row(out, run, p, c, h);
	html_table_end(out);
	free(h);
	return 0;
}

/* ---- decisions ---- */

static void decision_row(FILE *out, int number, const struct server_decision *d)
{
	char at[FORMAT_MAX], what[80];

	snprintf(what, sizeof(what), "%.24s %lld \xE2\x86\x92 %lld", d->action, d->from, d->to);
	markup(out, "<tr><th scope=row>%d<td>%s<td>%s<td>%s<td>%s<td>%s<td>%s\n", number,
	    format_clock(at, round(d->at_s * 100) / 100), d->stage, d->actor,
	    d->from == d->to ? d->action : what, d->rule, d->inputs);
}

void html_decisions(FILE *out, const struct rundata *run, const struct server_view *view)
{
	static const struct html_column column[] = {{"No.", NULL}, {"At", NULL}, {"Stage", NULL},
	    {"By", NULL}, {"Decision", NULL}, {"Why", NULL}, {"Seen", NULL}};
	int number = 0;

	for (int i = 0; i < view->n_decisions; i++) {
		if (!chart_decision_shown(run, &view->decision[i]) || ++number > CHART_PINS_MAX)
			continue;
		if (number == 1) {
			fputs("<h3>Decisions of the server</h3>\n<div class=decisions>\n", out);
			html_table(out, "Decisions of the server", column, 7);
		}
		decision_row(out, number, &view->decision[i]);
	}
	if (number == 0)
		return;
	html_table_end(out);
	if (number > CHART_PINS_MAX)
		markup(out, "<p class=soft>and %d more</p>\n", number - CHART_PINS_MAX);
	fputs("</div>\n", out);
}

/* ---- origin ---- */

static const char *about_member(const json_t *run, const char *object, const char *key)
{
	return json_string_value(
	    json_object_get(*object ? json_object_get(run, object) : run, key));
}

static void about_command(FILE *out, const json_t *run)
{
	const json_t *command = json_object_get(run, "command");

	for (size_t i = 0; i < json_array_size(command); i++) {
		const char *word = json_string_value(json_array_get(command, i));
		fputs(i ? " " : "<dt>command<dd><code>", out);
		markup_text(out, word ? word : "?");
	}
	fputs(json_array_size(command) ? "</code>\n" : "", out);
}

static void about_numbers(FILE *out, const struct rundata *run)
{
	const json_t *plan = json_object_get(run->json, "plan");
	char text[FORMAT_MAX];

	markup(out,
	    "<dt>clients<dd>at most %d connections, %d threads, time-out %s, %d retries\n"
	    "<dt>generator<dd>CPU %.1f s user, %.1f s system, ",
	    run->plan.connections, run->plan.threads,
	    format_time(text, (double)run->plan.timeout_ns / 1e9),
	    (int)json_integer_value(json_object_get(plan, "retries")), run->result.cpu_user_s,
	    run->result.cpu_system_s);
	markup(out, "%.0f connections made\n<dt>length<dd>%s in %d phases\n",
	    (double)run->result.connects, format_clock(text, (double)run->result.took_ns / 1e9),
	    run->plan.n_phases);
}

void html_about(FILE *out, const struct rundata *run)
{
	/* Term, object and member. */
	static const char *const member[][3] = {{"started", "", "started"}, {"loop", "", "mode"},
	    {"arrivals", "plan", "arrivals"}, {"capacity", "", "capacity_note"},
	    {"seed", "", "seed"}, {"machine", "host", "cpu"}, {"kernel", "host", "kernel"},
	    {"weir", "tool", "version"}, {"commit", "tool", "commit"}, {"flags", "tool", "flags"}};
	const json_t *host = json_object_get(run->json, "host");

	fputs("<dl>", out);
	html_term(out, "void", run->result.voided);
	html_term(out, "server", run->plan.url);
	about_command(out, run->json);
	about_numbers(out, run);
	markup(out, "<dt>cores<dd>%d cores\n",
	    (int)json_integer_value(json_object_get(host, "cores")));
	for (size_t i = 0; i < sizeof(member) / sizeof(member[0]); i++)
		html_term(out, member[i][0], about_member(run->json, member[i][1], member[i][2]));
	fputs("</dl>\n", out);
}
