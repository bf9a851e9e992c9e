/* SPDX-License-Identifier: MIT */
/* Describes comparisons in words; see compare.h. */
#include "report/compare.h"

#include <stdio.h>
#include <string.h>

format_fn *const compare_format[RUN_N_METRICS] = {
    [RUN_GOODPUT] = format_rate,
    [RUN_P50] = format_time,
    [RUN_P99] = format_time,
    [RUN_P999] = format_time,
    [RUN_SHED] = format_share,
    [RUN_ERROR] = format_share,
    [RUN_CPU] = format_time,
};

bool compare_is_share(enum run_metric metric)
{
	return metric == RUN_SHED || metric == RUN_ERROR;
}

char *compare_interval(
    const struct compare_cell *cell, enum run_metric metric, char *buf, size_t size)
{
	const struct stats_ratio *r = &cell->ratio;
	double points = (cell->a + COMPARE_SHARE_FLOOR) * 100;

	if (r->verdict == STATS_TOO_FEW)
		buf[0] = '\0';
	else if (compare_is_share(metric))
		snprintf(buf, size, "%+.1f..%+.1f", (r->low - 1) * points, (r->high - 1) * points);
	else
		snprintf(buf, size, "%.*f..%.*f", r->low < 0.1 ? 3 : 2, r->low,
		    r->high < 0.1 ? 3 : 2, r->high);
	return buf;
}

const char *compare_word(const struct stats_ratio *ratio)
{
	switch (ratio->verdict) {
	case STATS_BETTER:
		return "better";
	case STATS_WORSE:
		return "worse";
	case STATS_NOISE:
		return ratio->low > 1 || ratio->high < 1 ? "too small" : "within noise";
	default:
		return "too few";
	}
}

const char *compare_verdict(const struct comparison *c)
{
	const int *n = c->count;

	if (n[STATS_BETTER] > 0 && n[STATS_WORSE] > 0)
		return "mixed";
	if (n[STATS_BETTER] > 0)
		return "better";
	if (n[STATS_WORSE] > 0)
		return "worse";
	return n[STATS_NOISE] > 0 ? "within noise" : "too few";
}

/* Return how far a ratio is from 1 in either direction, as a factor of at least 1. */
static double off_one(double ratio)
{
	return ratio > 1 ? ratio : ratio > 0 ? 1 / ratio : 0;
}

/* Return the row whose ratio of `metric` is farthest from 1 among the rows with `verdict`; NULL if
 * there is none. */
static const struct compare_row *strongest(
    const struct comparison *c, enum stats_verdict verdict, int metric)
{
	const struct compare_row *best = NULL;
	double best_off = 0;

	for (int i = 0; i < c->n; i++) {
		const struct compare_cell *cell = &c->row[i].cell[metric];
		double off = off_one(cell->ratio.ratio);
		if (!cell->known || cell->ratio.verdict != verdict || off <= best_off)
			continue;
		best_off = off;
		best = &c->row[i];
	}
	return best;
}

/* Describe the strongest change among those with `verdict`, in the most important metric that has
 * such a change. The metrics are ordered by importance: goodput, latency, shares. */
static void say_strongest(
    const struct comparison *c, enum stats_verdict verdict, char *buf, size_t size)
{
	const struct compare_row *row = NULL;
	int metric = 0;

	buf[0] = '\0';
	while (metric < RUN_N_METRICS && !(row = strongest(c, verdict, metric)))
		metric++;
	if (!row)
		return;
	const struct compare_cell *cell = &row->cell[metric];
	if (compare_is_share(metric))
		snprintf(buf, size, "%s from %.1f to %.1f %% at %s", run_metric[metric].heading,
		    cell->a * 100, cell->b * 100, row->name);
	else
		snprintf(buf, size, "%s times %.*f at %s", run_metric[metric].heading,
		    cell->ratio.ratio < 0.1 ? 3 : 2, cell->ratio.ratio, row->name);
}

char *compare_sentence(const struct comparison *c, char *buf, size_t size)
{
	const int *n = c->count;
	char better[96], worse[96];

	say_strongest(c, STATS_BETTER, better, sizeof(better));
	say_strongest(c, STATS_WORSE, worse, sizeof(worse));
	if (*better && *worse)
		snprintf(buf, size,
		    "Mixed: better in %d figures (%s), worse in %d (%s), %d within noise.",
		    n[STATS_BETTER], better, n[STATS_WORSE], worse, n[STATS_NOISE]);
	else if (*better)
		snprintf(buf, size, "Better in %d figures (%s), worse in none, %d within noise.",
		    n[STATS_BETTER], better, n[STATS_NOISE]);
	else if (*worse)
		snprintf(buf, size, "Worse in %d figures (%s), better in none, %d within noise.",
		    n[STATS_WORSE], worse, n[STATS_NOISE]);
	else if (n[STATS_NOISE] > 0)
		snprintf(
		    buf, size, "No difference beyond the noise in %d figures.", n[STATS_NOISE]);
	else
		snprintf(buf, size, "There are too few samples for a verdict.");
	return buf;
}

const char *compare_note(const struct comparison *c, int i)
{
	const struct {
		bool holds;
		const char *text;
	} notes[] = {
	    {c->forced,
		"A run is void and was compared because of --force: these figures do not count."},
	    {c->drift,
		"The runs did not alternate in at least five rounds, so the machine may have "
		"changed between them."},
	    {c->multiples, "The runs offered the same multiples of different capacities, so rates "
			   "differ."},
	    {c->left_out > 0, "Loads that only one run has were left out."},
	    {c->count[STATS_BETTER] + c->count[STATS_WORSE] + c->count[STATS_NOISE] >= 20,
		"Even if the runs are equal, about five of a hundred 95 % intervals exclude "
		"equality by chance."},
	};

	for (size_t k = 0; k < sizeof(notes) / sizeof(notes[0]); k++)
		if (notes[k].holds && i-- == 0)
			return notes[k].text;
	return NULL;
}
