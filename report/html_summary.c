/* SPDX-License-Identifier: MIT */
/* Summarises a run in one sentence and in one table row; see html_parts.h. */
#include "report/html_parts.h"

#include <math.h>

#include "report/chart.h"
#include "report/verdict.h"

void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level)
{
	struct verdict v = verdict_of(&run->plan, &run->result);

	*level = v.kind == VERDICT_VOID ? "plain" : verdict_level(&v);
	verdict_sentence(&v, buf, size);
}

/* ---- the row ---- */

/* Return the worst p99 lag of the load generator in all phases except warm-ups. */
static double lag_p99(const struct rundata *run)
{
	const json_t *phases = json_object_get(run->json, "phases");
	double worst = NAN;

	for (size_t i = 0; i < json_array_size(phases); i++) {
		const json_t *lag = json_object_get(json_array_get(phases, i), "lag");
		if (run->plan.phase[i].warmup)
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
