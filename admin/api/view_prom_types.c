/* SPDX-License-Identifier: MIT */
/* Writes the metrics of stage types; see view_prom_types.h. */
#include "view_prom_types.h"

#include <stdio.h>
#include <string.h>

#include <weir/metric.h>

#include "admin/metrics/prom.h"

/* Return whether row `row` of `stage` is the first row with its name. Several stages, even of
 * different types, may have rows with the same name. Prometheus requires these to be in one family.
 * The first of them determines the kind and the help text; the others are printed with it if they
 * have the same kind. */
static bool is_first(const struct weir_graph_view *v, int stage, int row)
{
	const char *name = v->stages[stage].metrics[row].name;

	for (int i = 0; i <= stage; i++) {
		int rows = i == stage ? row : v->stages[i].n_metrics;
		for (int k = 0; k < rows; k++)
			if (strcmp(v->stages[i].metrics[k].name, name) == 0)
				return false;
	}
	return true;
}

/* Return whether "weir_<name>" is a valid metric name and is not used by a family of another file.
 * Names that begin with "stage_" or "core_group_" are reserved for such families. */
static bool is_printable(const char *name, view_prom_taken *taken)
{
	static const char alphabet[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	if (strspn(name, alphabet) != strlen(name) || !*name || strncmp(name, "stage_", 6) == 0 ||
	    strncmp(name, "core_group_", 11) == 0)
		return false;
	return !taken(name);
}

static void print_rows(struct textbuf *out, const char *family_name,
    const struct weir_graph_view *v, int from, int row)
{
	const struct weir_metric *first = &v->stages[from].metrics[row];

	for (int i = from; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		for (int k = 0; k < s->n_metrics; k++) {
			const struct weir_metric *m = &s->metrics[k];
			if (strcmp(m->name, first->name) != 0 || m->kind != first->kind)
				continue;
			prom_begin(out, family_name, "");
			prom_label(out, "stage", s->name);
			prom_signed(out, s->metric[k]);
		}
	}
}

static void print_family(struct textbuf *out, const struct weir_graph_view *v, int stage, int row,
    view_prom_taken *taken)
{
	const struct weir_metric *m = &v->stages[stage].metrics[row];
	char name[128];

	if (!is_printable(m->name, taken) || !is_first(v, stage, row))
		return;
	snprintf(name, sizeof(name), "weir_%s", m->name);
	prom_head(out, name, weir_metric_counts(m) ? "counter" : "gauge",
	    m->help ? m->help : "Defined by the stage type");
	print_rows(out, name, v, stage, row);
}

void view_prom_types(const struct weir_graph_view *v, view_prom_taken *taken, struct textbuf *out)
{
	for (int i = 0; i < v->n_stages; i++)
		for (int k = 0; k < v->stages[i].n_metrics; k++)
			print_family(out, v, i, k, taken);
}
