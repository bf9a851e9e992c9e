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

/* The points of a run with the best goodput and with the highest load. */
struct peaks {
	bool known;
	int best, highest;
	double best_per_s, highest_per_s, offered_per_s;
	double best_p99_s, highest_p99_s;
};

static double middle_of(const struct rundata *run, int point, enum run_metric metric)
{
	double v[3];

	return rundata_over_rounds(run, point, metric, v) ? v[0] : NAN;
}

static struct peaks find_peaks(const struct rundata *run)
{
	struct peaks k = {.highest = run->n_points - 1};
	double offered[3];

	for (int p = 0; p < run->n_points; p++) {
		double good = middle_of(run, p, RUN_GOODPUT);
		if (!(good > k.best_per_s))
			continue;
		k.known = true;
		k.best = p;
		k.best_per_s = good;
	}
	if (!k.known || !rundata_offered(run, k.highest, offered))
		return (struct peaks){.known = false};
	k.offered_per_s = offered[0];
	k.highest_per_s = middle_of(run, k.highest, RUN_GOODPUT);
	k.best_p99_s = middle_of(run, k.best, RUN_P99);
	k.highest_p99_s = middle_of(run, k.highest, RUN_P99);
	return k;
}

static bool overloaded(const struct peaks *k)
{
	return k->offered_per_s > OVERLOAD * k->best_per_s;
}

static void say_overload(
    const struct peaks *k, const char *best, char *buf, size_t size, const char **level)
{
	double kept = k->highest_per_s / k->best_per_s;
	char offered[FORMAT_MAX], share[FORMAT_MAX], p99[FORMAT_MAX];

	*level = kept >= KEPT_GOOD ? "ok" : kept >= KEPT_FAIR ? "warn" : "bad";
	format_rate(offered, k->offered_per_s);
	format_share(share, kept);
	format_time(p99, k->highest_p99_s);
	snprintf(buf, size, "%s at best, and %s of that when %s were asked for (p99 %s): %s.", best,
	    share, offered, p99,
	    kept >= KEPT_GOOD   ? "well-conditioned under overload"
	    : kept >= KEPT_FAIR ? "it loses goodput under overload"
				: "it collapses under overload");
}

void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level)
{
	struct peaks k = find_peaks(run);
	char best[FORMAT_MAX + 16], p99[FORMAT_MAX], rate[FORMAT_MAX];

	*level = "plain";
	if (run->result.voided[0]) {
		snprintf(buf, size, "No figure of this run counts, good or bad.");
		return;
	}
	if (!k.known) {
		snprintf(buf, size, "Nothing was served.");
		*level = "bad";
		return;
	}
	snprintf(best, sizeof(best), "Served %s", format_rate(rate, k.best_per_s));
	if (run->plan.closed)
		snprintf(buf, size,
		    "%s at p99 %s in a closed loop, in which nobody can be overloaded.", best,
		    format_time(p99, k.best_p99_s));
	else if (overloaded(&k))
		say_overload(&k, best, buf, size, level);
	else
		snprintf(buf, size, "%s at p99 %s; the load did not exceed the capacity.", best,
		    format_time(p99, k.best_p99_s));
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

static void name_cell(FILE *out, const struct rundata *run, int style, bool baseline)
{
	fputs("<tr><th scope=row>", out);
	svg_swatch(out, SERIES_MARKED, style % CHART_STYLES);
	markup_text(out, run->name);
	if (baseline)
		fputs(" <span class=badge>baseline</span>", out);
	if (run->result.voided[0])
		fputs(" <span class='badge bad'>VOID</span>", out);
	if (run->result.stopped)
		fputs(" <span class='badge warn'>stopped by hand</span>", out);
	fprintf(out, "<td><span class='badge%s'>%s loop</span>", run->plan.closed ? " warn" : "",
	    run->plan.closed ? "closed" : "open");
}

static void summary_row(FILE *out, const struct rundata *run, int i, bool baseline)
{
	struct peaks k = find_peaks(run);

	name_cell(out, run, i, baseline);
	html_cell_value(out, format_rate, run->capacity_per_s > 0 ? run->capacity_per_s : NAN);
	html_cell_value(out, format_rate, k.known ? k.best_per_s : NAN);
	html_cell_value(out, format_time, k.known ? k.best_p99_s : NAN);
	html_cell_value(out, format_rate, k.known ? k.offered_per_s : NAN);
	html_cell_value(out, format_rate, k.known ? k.highest_per_s : NAN);
	html_cell_value(out, format_share, k.known ? k.highest_per_s / k.best_per_s : NAN);
	html_cell_value(out, format_time, k.known ? k.highest_p99_s : NAN);
	html_cell_value(out, format_time, lag_p99(run));
	fputs("\n", out);
}

void html_summary_table(FILE *out, const struct rundata *run, int n_runs)
{
	static const char *const heading[] = {"Run", "Load", "Capacity", "Best goodput", "its p99",
	    "Highest load", "Goodput there", "of the best", "its p99", "Generator late (p99)"};

	html_table(out, "The runs", heading, (int)(sizeof(heading) / sizeof(heading[0])));
	for (int i = 0; i < n_runs; i++)
		summary_row(out, &run[i], i, i == 0 && n_runs > 1);
	html_table_end(out);
}
