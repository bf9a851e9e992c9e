/* SPDX-License-Identifier: MIT */
/* Writes the tables; see parts.h. Optional end tags are omitted. */
#include "report/overload/parts.h"

#include <math.h>
#include <string.h>

#include "report/html_parts.h"

#define COLUMNS_MAX 40

/* Write the heading of a row, with a swatch if the policy has a style in the charts. */
static void policy_head(FILE *out, const char *policy, int i)
{
	fputs("<tr><th scope=row>", out);
	if (i < CHART_STYLES)
		svg_swatch(out, SERIES_MARKED, i);
	markup_text(out, policy);
}

/* Write a cell with the middle value and, in small print, the range from the lowest to the highest.
 * The range is left out if there is only one value or both ends look the same. */
static void range_cell(FILE *out, const struct over_range *v, format_fn *print)
{
	char low[FORMAT_MAX], high[FORMAT_MAX];

	html_cell_value(out, print, v->mid);
	if (v->n >= 2 && strcmp(print(low, v->low), print(high, v->high)) != 0)
		markup(out, " <small>%s\xE2\x80\xA6%s</small>", low, high);
}

/* ---- targets ---- */

char *over_verdict(
    const struct over_points *p, const char *where, char *buf, size_t size, const char **level)
{
	struct over_names policy = over_policies(p, where);
	char missed[400] = "";
	int known = 0, met = 0;
	size_t n = 0;

	for (int i = 0; policy.n > 0 && i < over_n_targets; i++) {
		struct over_standing s = over_judge(p, &over_targets[i], where, policy.name[0]);
		known += s.known;
		met += s.met;
		if (s.known && !s.met && n < sizeof(missed))
			n += (size_t)snprintf(missed + n, sizeof(missed) - n, "%s%s", n ? "; " : "",
			    over_targets[i].name);
	}
	*level = known == 0 ? "plain" : met == known ? "ok" : "warn";
	if (known == 0)
		snprintf(buf, size, "no target was measured.");
	else
		snprintf(buf, size, "%s meets %d of the %d targets that were measured.%s%s%s",
		    policy.name[0], met, known, n ? " Missed: " : "", missed, n ? "." : "");
	return buf;
}

/* Write whether the target is met, or by how much it is missed ("missed by 0.07"), and the worst
 * point. For shares, the difference is in percentage points; for times, it is a time. */
static void standing_cells(FILE *out, const struct over_target *t, const struct over_standing *s)
{
	char text[FORMAT_MAX];

	if (!s->known) {
		fputs("<td><span class=badge>not measured</span><td>", out);
		return;
	}
	markup(out, "<td class=%s><span class=mark>%s", s->met ? "better" : "worse",
	    s->met ? "met" : "missed");
	if (!s->met && isfinite(s->value))
		markup(out, " by %s", over_print[t->metric](text, fabs(s->value - s->limit)));
	markup(out, "</span><td>%s at %s, %d %s", s->worst->first->workload,
	    over_print_load(text, s->worst->first->load), s->worst->rounds,
	    s->worst->rounds == 1 ? "round" : "rounds");
}

static void target_row(FILE *out, const struct over_points *p, const char *where,
    const struct over_target *t, const struct over_names *policy)
{
	struct over_standing s = over_judge(p, t, where, policy->name[0]);
	format_fn *print = over_print[t->metric];
	char limit[FORMAT_MAX], value[FORMAT_MAX];

	markup(out, "<tr><th scope=row>%s<td>%s %s<td>%s", t->name,
	    over_more_is_better[t->metric] ? "\xE2\x89\xA5" : "\xE2\x89\xA4", print(limit, s.limit),
	    print(value, s.value));
	standing_cells(out, t, &s);
	for (int i = 1; i < policy->n; i++) {
		s = over_judge(p, t, where, policy->name[i]);
		markup(
		    out, "<td%s>%s", s.known && !s.met ? " class=off" : "", print(value, s.value));
	}
	fputs("\n", out);
}

void over_target_table(FILE *out, const struct over_points *p, const char *where)
{
	struct over_names policy = over_policies(p, where);
	struct html_column column[OVER_NAMES_MAX + 4] = {{"Target", NULL}, {"limit", NULL},
	    {policy.name[0], NULL}, {"verdict", NULL}, {"worst at", NULL}};

	for (int i = 1; i < policy.n; i++)
		column[i + 4].heading = policy.name[i];
	fputs("<div class=targets>\n", out);
	html_table(out, "Targets of the evaluation protocol", column, policy.n + 4);
	for (int i = 0; i < over_n_targets; i++)
		target_row(out, p, where, &over_targets[i], &policy);
	html_table_end(out);
	fputs("</div>\n", out);
}

/* ---- loads and classes ---- */

void over_goodput_table(FILE *out, const struct over_work *w)
{
	static const struct over_range none = {0, NAN, NAN, NAN};
	double load[COLUMNS_MAX] = {0};
	char text[COLUMNS_MAX][FORMAT_MAX];
	struct html_column column[COLUMNS_MAX] = {{"goodput / capacity", NULL}};
	int n = 1;

	for (int i = 0; i < w->points->n && n < COLUMNS_MAX; i++) {
		const struct over_row *r = w->points->point[i].first; /* ascending by load */
		if (!over_is_of(w, r) || (n > 1 && r->load <= load[n - 1]))
			continue;
		column[n].heading = over_print_load(text[n], r->load);
		load[n++] = r->load;
	}
	html_table(out, "Goodput over capacity by load", column, n);
	for (int k = 0; k < w->policy.n; k++) {
		policy_head(out, w->policy.name[k], k);
		for (int i = 1; i < n; i++) {
			const struct over_point *at = over_at(w, k, load[i]);
			range_cell(out, at ? &at->of[OVER_GOODPUT] : &none, over_print_2);
			if (at && at->voids > 0)
				markup(out, " <span class='badge warn'>%d void</span>", at->voids);
		}
		fputs("\n", out);
	}
	html_table_end(out);
}

/* Return the success rate of class `k` over all rounds of a point. */
static double success(const struct over_rows *rows, const struct over_point *at, int k)
{
	double offered = 0, good = 0;

	for (int i = 0; at && i < rows->n; i++) {
		const struct over_row *r = &rows->row[i];
		if (k >= r->n_classes || !over_same_point(r, at->first))
			continue;
		offered += r->class[k].offered;
		good += r->class[k].good;
	}
	return offered > 0 ? good / offered : NAN;
}

void over_class_table(FILE *out, const struct over_work *w)
{
	const struct over_point *any = over_at(w, 0, w->highest);
	struct html_column column[OVER_CLASSES_MAX + 1] = {{"success by class", NULL}};
	char text[OVER_CLASSES_MAX][64], x[FORMAT_MAX];
	double value[OVER_CLASSES_MAX];

	if (!any || any->rounds == 0 || any->first->n_classes < 2)
		return;
	int n = any->first->n_classes;
	over_print_load(x, w->highest);
	for (int k = 0; k < n; k++) {
		snprintf(text[k], sizeof(text[k]), "%s at %s", any->first->class[k].name, x);
		column[k + 1] = (struct html_column){text[k], over_print_share};
	}
	html_table(out, "Success by class at the highest load", column, n + 1);
	for (int i = 0; i < w->policy.n; i++) {
		for (int k = 0; k < n; k++)
			value[k] = success(w->rows, over_at(w, i, w->highest), k);
		policy_head(out, w->policy.name[i], i);
		html_values(out, column + 1, n, value);
	}
	html_table_end(out);
}

/* ---- everything ---- */

/* Store the metrics that any point of the workload has, and their headings. Returns their
 * number. */
static int known_metrics(const struct over_work *w, int *known, struct html_column *column)
{
	int n = 0;

	for (int m = 0; m < OVER_N_METRICS; m++) {
		bool any = false;
		for (int i = 0; i < w->points->n; i++)
			any = any || (over_is_of(w, w->points->point[i].first) &&
					 w->points->point[i].of[m].n > 0);
		if (!any)
			continue;
		column[n].heading = over_heading[m];
		known[n++] = m;
	}
	return n;
}

void over_detail_table(FILE *out, const struct over_work *w)
{
	struct html_column column[OVER_N_METRICS + 3] = {
	    {"policy", NULL}, {"load", NULL}, {"rounds", NULL}};
	int known[OVER_N_METRICS], n = known_metrics(w, known, column + 3);
	char load[FORMAT_MAX];

	fputs("<details class=twin><summary>All medians and ranges as a table</summary>\n", out);
	html_table(out, "All medians and ranges", column, n + 3);
	for (int k = 0; k < w->policy.n; k++)
		for (int i = 0; i < w->points->n; i++) {
			const struct over_point *at = &w->points->point[i];
			if (!over_is_of(w, at->first) ||
			    strcmp(at->first->policy, w->policy.name[k]) != 0)
				continue;
			markup(out, "<tr><th scope=row>%s<td>%s<td>%d", w->policy.name[k],
			    over_print_load(load, at->first->load), at->rounds);
			for (int m = 0; m < n; m++)
				range_cell(out, &at->of[known[m]], over_print[known[m]]);
			fputs("\n", out);
		}
	html_table_end(out);
	fputs("</details>\n", out);
}
