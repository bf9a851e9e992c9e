/* SPDX-License-Identifier: MIT */
/* Summarises a run in one sentence and in one table row; see html_parts.h. */
#include "report/html_parts.h"

#include <math.h>

#include "report/chart.h"

/* Limits for the goodput at the highest load divided by the best goodput. The evaluation protocol
 * aims at 0.95. */
#define KEPT_GOOD 0.95
#define KEPT_FAIR 0.80
/* Ratio of offered load to best goodput above which a run counts as overloaded. */
#define OVERLOAD 1.2

/* Goodput and p99 at the point with the best goodput (`best`) and at the highest load (`highest`).
 * offered_per_s is the highest load. A p99 is NAN if nothing was served at its point. All members
 * are NAN if nothing was served at any point. */
struct peaks {
	double best_per_s, best_p99_s, offered_per_s, highest_per_s, highest_p99_s;
};

static double middle_of(const struct rundata *run, int point, enum run_metric metric)
{
	double v[3];

	return rundata_over_rounds(run, point, metric, v) ? v[0] : NAN;
}

static struct peaks find_peaks(const struct rundata *run)
{
	struct peaks k = {.highest_per_s = NAN};
	double offered[3], good = NAN;
	int last = run->n_points - 1;

	for (int p = 0; p <= last; p++) {
		good = middle_of(run, p, RUN_GOODPUT);
		if (!(good > k.best_per_s))
			continue;
		k.best_per_s = good;
		k.best_p99_s = middle_of(run, p, RUN_P99);
	}
	if (k.best_per_s <= 0 || !rundata_offered(run, last, offered))
		return (struct peaks){NAN, NAN, NAN, NAN, NAN};
	k.offered_per_s = offered[0];
	k.highest_per_s = good;
	k.highest_p99_s = middle_of(run, last, RUN_P99);
	return k;
}

void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level)
{
	struct peaks k = find_peaks(run);
	double kept = k.highest_per_s / k.best_per_s;
	char best[FORMAT_MAX], p99[FORMAT_MAX], offered[FORMAT_MAX], share[FORMAT_MAX];

	*level = "plain";
	format_rate(best, k.best_per_s);
	format_time(p99, k.best_p99_s);
	if (run->result.voided[0]) {
		snprintf(buf, size, "No figure of this run counts.");
	} else if (isnan(k.best_per_s)) {
		snprintf(buf, size, "Nothing was served.");
		*level = "bad";
	} else if (run->plan.closed || k.offered_per_s <= OVERLOAD * k.best_per_s) {
		snprintf(buf, size, "Served %s at p99 %s%s.", best, p99,
		    run->plan.closed ? " in a closed loop, which cannot overload a server"
				     : "; the load did not exceed the capacity");
	} else {
		*level = kept >= KEPT_GOOD ? "ok" : kept >= KEPT_FAIR ? "warn" : "bad";
		snprintf(buf, size,
		    "Served %s at best, and %s of that when %s were offered (p99 %s): %s.", best,
		    format_share(share, kept), format_rate(offered, k.offered_per_s),
		    format_time(p99, k.highest_p99_s),
		    kept >= KEPT_GOOD   ? "well-conditioned under overload"
		    : kept >= KEPT_FAIR ? "it loses goodput under overload"
					: "it collapses under overload");
	}
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
		struct peaks k = find_peaks(&run[i]);
		double capacity = run[i].capacity_per_s > 0 ? run[i].capacity_per_s : NAN;
		summary_head(out, &run[i], i, i == 0 && n_runs > 1);
		html_values(out, column + 2, 8,
		    (const double[]){capacity, k.best_per_s, k.best_p99_s, k.offered_per_s,
			k.highest_per_s, k.highest_per_s / k.best_per_s, k.highest_p99_s,
			lag_p99(&run[i])});
	}
	html_table_end(out);
}
