/* SPDX-License-Identifier: MIT */
/* Summarises a run in one sentence, in one table row or in tiles; see html_parts.h. */
#include "report/html_parts.h"

#include <math.h>

#include "load/judge.h"
#include "report/chart.h"
#include "report/verdict.h"

void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level)
{
	struct verdict v = verdict_of(&run->plan, &run->result);

	*level = v.kind == VERDICT_VOID ? "plain" : verdict_level(&v);
	verdict_sentence(&v, buf, size);
}

/* ---- the row ---- */

/* Return the worst p99 lag of the load generator in all phases that count. */
static double lag_p99(const struct rundata *run)
{
	const json_t *phases = json_object_get(run->json, "phases");
	double worst = NAN;

	for (size_t i = 0; i < json_array_size(phases); i++) {
		const json_t *lag = json_object_get(json_array_get(phases, i), "lag");
		if (!load_phase_counts(&run->plan, &run->result, (int)i))
			continue;
		worst = fmax(worst, json_number_value(json_object_get(lag, "p99_s")));
	}
	return worst;
}

static void summary_head(FILE *out, const struct rundata *run, int i, bool baseline)
{
	fputs("<tr><th scope=row>", out);
	svg_swatch(out, SERIES_MARKED, i % CHART_STYLES);
	markup_text(out, run->name);
	if (baseline)
		fputs(" <span class=badge>baseline</span>", out);
	if (run->result.voided[0])
		fputs(" <span class='badge bad'>VOID</span>", out);
	if (run->result.stopped)
		fputs(" <span class='badge warn'>stopped by hand</span>", out);
	markup(out, "<td><span class='badge%s'>%s loop</span>", run->plan.closed ? " warn" : "",
	    run->plan.closed ? "closed" : "open");
}

void html_summary_table(FILE *out, const struct rundata *run, int n_runs)
{
	static const struct html_column column[] = {{"Run", NULL}, {"Load", NULL},
	    {"Capacity", format_rate}, {"Best goodput", format_rate}, {"its p99", format_time},
	    {"Highest load", format_rate}, {"Goodput there", format_rate},
	    {"of the best", format_share}, {"its p99", format_time},
	    {"Generator late (p99)", format_time}};

	html_table(out, "The runs", column, 10);
	for (int i = 0; i < n_runs; i++) {
		struct verdict v = verdict_of(&run[i].plan, &run[i].result);
		bool any = v.kind > VERDICT_NOTHING;
		double capacity = run[i].capacity_per_s > 0 ? run[i].capacity_per_s : NAN;
		summary_head(out, &run[i], i, i == 0 && n_runs > 1);
		html_values(out, column + 2, 8,
		    (const double[]){capacity, any ? v.best_per_s : NAN, v.best_p99_s,
			any ? v.offered_per_s : NAN, any ? v.highest_per_s : NAN,
			any ? v.kept : NAN, v.highest_p99_s, lag_p99(&run[i])});
	}
	html_table_end(out);
}

/* ---- the tiles ---- */

static void tile(FILE *out, const char *name, const char *value, const char *more)
{
	markup(out, "<div class=tile><dt>%s<dd><b>%s</b>", name, value);
	if (*more)
		markup(out, "<small>%s</small>", more);
	fputs("</div>\n", out);
}

/* "88 to 96 %": empty if the noise is unknown. */
static char *interval(const struct verdict *v, char buf[2 * FORMAT_MAX])
{
	buf[0] = '\0';
	if (!isnan(v->noise) && v->kind >= VERDICT_UNSURE)
		snprintf(buf, 2 * FORMAT_MAX, "95 %% interval: %.0f to %.0f %%", v->low * 100,
		    v->high * 100);
	return buf;
}

static void class_tile(FILE *out, const struct rundata *run, int class_id)
{
	double served[3];
	char share[FORMAT_MAX], name[64];

	if (!rundata_served(run, run->n_points - 1, class_id, served))
		return;
	snprintf(name, sizeof(name), "%.31s served there", run->plan.class[class_id].name);
	tile(out, name, format_share(share, served[0]), "");
}

static void summary_tiles(FILE *out, const struct rundata *run, const struct verdict *v)
{
	double capacity = run->capacity_per_s > 0 ? run->capacity_per_s : NAN;
	char text[FORMAT_MAX], p99[FORMAT_MAX], more[2 * FORMAT_MAX];

	fputs("<dl class=tiles>\n", out);
	if (!isnan(capacity))
		tile(out, "Capacity", format_rate(text, capacity), "");
	snprintf(more, sizeof(more), "p99 %s", format_time(p99, v->best_p99_s));
	tile(out, "Best goodput", format_rate(text, v->best_per_s), more);
	snprintf(more, sizeof(more), "p99 %s", format_time(p99, v->highest_p99_s));
	if (v->n_points > 1) {
		tile(out, "Highest load", format_rate(text, v->offered_per_s), "");
		tile(out, "Goodput there", format_rate(text, v->highest_per_s), more);
		tile(out, "Of the best", format_share(text, v->kept), interval(v, more));
	}
	for (int c = 0; run->plan.n_classes > 1 && c < run->plan.n_classes; c++)
		class_tile(out, run, c);
	format_time(text, lag_p99(run));
	tile(out, "Generator's lag (p99)", text, run->plan.closed ? "closed loop" : "");
	fputs("</dl>\n", out);
}

static void objective_term(FILE *out, const json_t *run)
{
	const json_t *objective = json_object_get(run, "objective");
	const json_t *met = json_object_get(objective, "met");
	const char *name = json_string_value(json_object_get(objective, "text"));
	char text[128];

	if (!name)
		return;
	snprintf(text, sizeof(text), "%.60s %s", name,
	    json_is_true(met)    ? "met"
	    : json_is_false(met) ? "MISSED"
				 : "not known: the generator's lag could make the difference");
	html_term(out, "Objective", text);
}

void html_summary(FILE *out, const struct rundata *run)
{
	struct verdict v = verdict_of(&run->plan, &run->result);
	char text[400];

	if (v.kind > VERDICT_NOTHING)
		summary_tiles(out, run, &v);
	fputs("<dl class=checks>", out);
	html_term(out, "Check", verdict_check(&v, text, sizeof(text)));
	html_term(out, "Certainty", verdict_certainty(&v, text, sizeof(text)));
	objective_term(out, run->json);
	html_term(out, "Capacity", json_string_value(json_object_get(run->json, "capacity_note")));
	snprintf(text, sizeof(text),
	    "%d phase%s: the lag of the generator was above its limit, which is %.3g ms up to the "
	    "capacity. They do not count.",
	    v.n_late, v.n_late == 1 ? "" : "s", (double)load_lag_limit_ns(&run->plan) / 1e6);
	html_term(out, "Late", v.n_late > 0 && !run->result.voided[0] ? text : "");
	html_term(out, "Stopped", run->result.stopped ? "by hand" : "");
	fputs("</dl>\n", out);
}
