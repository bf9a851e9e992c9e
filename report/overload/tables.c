/* SPDX-License-Identifier: MIT */
/* Writes the tables; see tables.h. Optional end tags are omitted. */
#include "report/overload/tables.h"

#include <math.h>
#include <string.h>

#include "report/chart.h"
#include "report/html_parts.h"

#define COLUMNS_MAX 40

const char *over_subject(const struct over_points *p, const char *where)
{
	struct over_names policy = over_policies(p, where);

	return policy.n > 0 ? policy.name[0] : NULL;
}

/* Write the heading of a row, with a swatch if the policy has a style in the charts. */
static void policy_head(FILE *out, const char *policy, int i)
{
	fputs("<tr><th scope=row>", out);
	if (i < CHART_STYLES)
		svg_swatch(out, SERIES_MARKED, i);
	markup_text(out, policy);
}

/* Write a cell such as "0.98 (0.96 to 1.00)". */
static void range_cell(FILE *out, const struct over_range *v, format_fn *print)
{
	char mid[FORMAT_MAX], low[FORMAT_MAX], high[FORMAT_MAX];

	fputs("<td>", out);
	markup_text(out, print(mid, v->mid));
	print(low, v->low);
	print(high, v->high);
	if (v->n < 2 || strcmp(low, high) == 0)
		return;
	fputs(" <small>", out);
	markup_text(out, low);
	fputs("\xE2\x80\xA6", out);
	markup_text(out, high);
	fputs("</small>", out);
}

/* ---- targets ---- */

char *over_verdict(
    const struct over_points *p, const char *where, char *buf, size_t size, const char **level)
{
	const char *subject = over_subject(p, where);
	char missed[400] = "";
	int known = 0, met = 0;
	size_t n = 0;

	for (int i = 0; subject && i < over_n_targets; i++) {
		struct over_standing s = over_judge(p, &over_targets[i], where, subject);
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
		    subject, met, known, n ? " Missed: " : "", missed, n ? "." : "");
	return buf;
}

/* Write whether the target is met, or by how much it is missed ("missed by 0.07"). For shares, the
 * difference is in percentage points; for times, it is a time. */
static void say_standing(FILE *out, const struct over_target *t, const struct over_standing *s)
{
	char by[FORMAT_MAX];

	if (!s->known) {
		fputs("<td><span class=badge>not measured</span>", out);
		return;
	}
	fprintf(out, "<td class=%s><span class=mark>%s", s->met ? "better" : "worse",
	    s->met ? "met" : "missed");
	if (!s->met && isfinite(s->value)) {
		fputs(" by ", out);
		markup_text(out, over_print[t->metric](by, fabs(s->value - s->limit)));
	}
	fputs("</span>", out);
}

static void limit_cell(FILE *out, const struct over_target *t, const struct over_standing *s)
{
	char limit[FORMAT_MAX], text[FORMAT_MAX + 8];

	snprintf(text, sizeof(text), "%s %s",
	    over_more_is_better[t->metric] ? "\xE2\x89\xA5" : "\xE2\x89\xA4",
	    over_print[t->metric](limit, s->limit));
	html_cell(out, text);
}

static void worst_cell(FILE *out, const struct over_standing *s)
{
	char load[FORMAT_MAX], text[96];

	if (!s->known) {
		html_cell(out, "");
		return;
	}
	snprintf(text, sizeof(text), "%s at %s, %d %s", s->worst->first->workload,
	    over_print_load(load, s->worst->first->load), s->worst->rounds,
	    s->worst->rounds == 1 ? "round" : "rounds");
	html_cell(out, text);
}

static void target_row(FILE *out, const struct over_points *p, const char *where,
    const struct over_target *t, const struct over_names *policy)
{
	struct over_standing s = over_judge(p, t, where, policy->name[0]);

	html_row(out, t->name);
	limit_cell(out, t, &s);
	html_cell_value(out, over_print[t->metric], s.value);
	say_standing(out, t, &s);
	worst_cell(out, &s);
	for (int i = 1; i < policy->n; i++) {
		struct over_standing other = over_judge(p, t, where, policy->name[i]);
		fprintf(out, "<td%s>", other.known && !other.met ? " class=off" : "");
		char text[FORMAT_MAX];
		markup_text(out, over_print[t->metric](text, other.value));
	}
	fputs("\n", out);
}

void over_target_table(FILE *out, const struct over_points *p, const char *where)
{
	struct over_names policy = over_policies(p, where);
	const char *heading[COLUMNS_MAX] = {"Target", "limit", "", "verdict", "worst at"};
	int n = 5;

	heading[2] = policy.name[0];
	for (int i = 1; i < policy.n && n < COLUMNS_MAX; i++)
		heading[n++] = policy.name[i];
	fputs("<div class=targets>\n", out);
	html_table(out, "Targets of the evaluation protocol", heading, n);
	for (int i = 0; i < over_n_targets; i++)
		target_row(out, p, where, &over_targets[i], &policy);
	html_table_end(out);
	fputs("</div>\n", out);
}

/* ---- loads ---- */

/* Store the distinct loads of a workload in ascending order, which is the order of the points. */
static int loads_of(
    const struct over_points *p, const char *where, const char *workload, double *load)
{
	int n = 0;

	for (int i = 0; i < p->n && n < COLUMNS_MAX - 1; i++) {
		const struct over_row *r = p->point[i].first;
		if (strcmp(r->where, where) != 0 || strcmp(r->workload, workload) != 0)
			continue;
		if (n == 0 || r->load > load[n - 1])
			load[n++] = r->load;
	}
	return n;
}

void over_goodput_table(
    FILE *out, const struct over_points *p, const char *where, const char *workload)
{
	static const struct over_range none = {0, NAN, NAN, NAN};
	struct over_names policy = over_policies(p, where);
	double load[COLUMNS_MAX];
	char text[COLUMNS_MAX][FORMAT_MAX];
	const char *heading[COLUMNS_MAX] = {"goodput / capacity"};
	int n = loads_of(p, where, workload, load);

	for (int i = 0; i < n; i++)
		heading[i + 1] = over_print_load(text[i], load[i]);
	html_table(out, "Goodput over capacity by load", heading, n + 1);
	for (int k = 0; k < policy.n; k++) {
		policy_head(out, policy.name[k], k);
		for (int i = 0; i < n; i++) {
			const struct over_point *at =
			    over_point_find(p, where, workload, policy.name[k], load[i]);
			range_cell(out, at ? &at->of[OVER_GOODPUT] : &none, over_print_2);
			if (at && at->voids > 0)
				fprintf(out, " <span class='badge warn'>%d void</span>", at->voids);
		}
		fputs("\n", out);
	}
	html_table_end(out);
}

/* ---- classes ---- */

/* Return the success rate of class `k` over all rounds of a point. */
static double success(const struct over_rows *rows, const struct over_point *at, int k)
{
	const struct over_row *f = at->first;
	double offered = 0, good = 0;

	for (int i = 0; i < rows->n; i++) {
		const struct over_row *r = &rows->row[i];
		if (r->is_void != f->is_void || k >= r->n_classes ||
		    strcmp(r->where, f->where) != 0 || strcmp(r->workload, f->workload) != 0 ||
		    strcmp(r->policy, f->policy) != 0 || fabs(r->load - f->load) > 1e-9)
			continue;
		offered += r->class[k].offered;
		good += r->class[k].good;
	}
	return offered > 0 ? good / offered : NAN;
}

void over_class_table(FILE *out, const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load)
{
	struct over_names policy = over_policies(p, where);
	const struct over_point *any = over_point_find(p, where, workload, policy.name[0], load);
	const char *heading[OVER_CLASSES_MAX + 1] = {"success by class"};
	char text[OVER_CLASSES_MAX][64], x[FORMAT_MAX];

	if (!any || any->rounds == 0 || any->first->n_classes < 2)
		return;
	int n = any->first->n_classes;
	for (int k = 0; k < n; k++) {
		snprintf(text[k], sizeof(text[k]), "%s at %s", any->first->class[k].name,
		    over_print_load(x, load));
		heading[k + 1] = text[k];
	}
	html_table(out, "Success by class at the highest load", heading, n + 1);
	for (int i = 0; i < policy.n; i++) {
		const struct over_point *at =
		    over_point_find(p, where, workload, policy.name[i], load);
		policy_head(out, policy.name[i], i);
		for (int k = 0; k < n; k++)
			html_cell_value(out, over_print_share, at ? success(rows, at, k) : NAN);
		fputs("\n", out);
	}
	html_table_end(out);
}

/* ---- everything ---- */

static bool is_known(
    const struct over_points *p, const char *where, const char *workload, enum over_metric m)
{
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->point[i].first->where, where) == 0 &&
		    strcmp(p->point[i].first->workload, workload) == 0 && p->point[i].of[m].n > 0)
			return true;
	return false;
}

void over_detail_table(
    FILE *out, const struct over_points *p, const char *where, const char *workload)
{
	struct over_names policy = over_policies(p, where);
	const char *heading[OVER_N_METRICS + 3] = {"policy", "load", "rounds"};
	enum over_metric known[OVER_N_METRICS];
	int n = 0;

	for (int m = 0; m < OVER_N_METRICS; m++)
		if (is_known(p, where, workload, (enum over_metric)m)) {
			heading[n + 3] = over_heading[m];
			known[n++] = (enum over_metric)m;
		}
	fputs("<details class=twin><summary>All medians and ranges as a table</summary>\n", out);
	html_table(out, "All medians and ranges", heading, n + 3);
	for (int k = 0; k < policy.n; k++)
		for (int i = 0; i < p->n; i++) {
			const struct over_point *at = &p->point[i];
			if (strcmp(at->first->where, where) != 0 ||
			    strcmp(at->first->workload, workload) != 0 ||
			    strcmp(at->first->policy, policy.name[k]) != 0)
				continue;
			html_row(out, policy.name[k]);
			html_cell_value(out, over_print_load, at->first->load);
			fprintf(out, "<td>%d", at->rounds);
			for (int m = 0; m < n; m++)
				range_cell(out, &at->of[known[m]], over_print[known[m]]);
			fputs("\n", out);
		}
	html_table_end(out);
	fputs("</details>\n", out);
}
