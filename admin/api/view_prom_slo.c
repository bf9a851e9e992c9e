/* SPDX-License-Identifier: MIT */
/* Prints classes and their objectives; see view_prom_slo.h. Classes without an objective have only a
 * rank. */
#include "view_prom_slo.h"

#include "admin/metrics/burn.h"
#include "admin/metrics/prom.h"

static void print_ranks(const struct weir_graph_view *v, struct textbuf *out)
{
	prom_head(out, "weir_class_rank", "gauge",
	    "Position of the class in the order of the configuration; 0 is the highest");
	for (int c = 0; c < v->n_classes; c++) {
		prom_begin(out, "weir_class_rank", "");
		prom_label(out, "class", v->class_name[c]);
		prom_count(out, (uint64_t)c);
	}
}

static void print_objectives(const struct weir_graph_view *v, struct textbuf *out)
{
	prom_head(out, "weir_class_slo_seconds", "gauge",
	    "Objective of the class, if the configuration sets one");
	for (int c = 0; c < v->n_classes; c++) {
		if (v->class_slo_ns[c] <= 0)
			continue;
		prom_begin(out, "weir_class_slo_seconds", "");
		prom_label(out, "class", v->class_name[c]);
		prom_seconds(out, v->class_slo_ns[c]);
	}
}

/* Print the requests of each class with an objective at a source, or those that missed it. */
static void print_stage(const struct weir_graph_view *v, const struct weir_stage_view *s,
    const char *name, bool misses, struct textbuf *out)
{
	for (int c = 0; s->answers && c < v->n_classes; c++) {
		uint64_t all = 0, missed = 0;
		if (v->class_slo_ns[c] <= 0)
			continue;
		burn_count(&s->answers[c], v->class_slo_ns[c], c == 0, &all, &missed);
		prom_begin(out, name, "");
		prom_label(out, "stage", s->name);
		prom_label(out, "class", v->class_name[c]);
		prom_count(out, misses ? missed : all);
	}
}

void view_prom_slo(const struct weir_graph_view *v, struct textbuf *out)
{
	static const char requests[] = "weir_slo_requests_total",
			  misses[] = "weir_slo_misses_total";

	print_ranks(v, out);
	print_objectives(v, out);
	prom_head(out, requests, "counter",
	    "Answered requests of the classes with an objective; refusals count in the highest "
	    "class "
	    "only");
	for (int i = 0; i < v->n_stages; i++)
		print_stage(v, &v->stages[i], requests, false, out);
	prom_head(out, misses, "counter",
	    "Of these, requests that were answered too late, failed or, in the highest class, were "
	    "refused");
	for (int i = 0; i < v->n_stages; i++)
		print_stage(v, &v->stages[i], misses, true, out);
}
