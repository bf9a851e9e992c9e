/* SPDX-License-Identifier: MIT */
/*
 * Builds the charts of the overload report. Each function returns a new chart, to be freed with
 * chart_free, or NULL if out of memory. A chart without values (chart_has_values) need not be
 * drawn. No chart shows void runs. A policy has the same style in all charts of one `where`.
 */
#ifndef WEIR_REPORT_OVERLOAD_CHARTS_H
#define WEIR_REPORT_OVERLOAD_CHARTS_H

#include "report/chart.h"
#include "report/overload/points.h"

/** A metric against the load, on a logarithmic axis, with a line per policy: medians, and the range
 * of the rounds. */
struct chart *over_chart_load(const struct over_points *p, const char *where, const char *workload,
    enum over_metric metric, const char *title);

/** Goodput over time at `load`, with a line per policy: the means of the rounds. */
struct chart *over_chart_time(const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load);

/** Threads over time at `load`, with a line per policy, from its first valid round. */
struct chart *over_chart_threads(
    const struct over_points *p, const char *where, const char *workload, double load);

/** The highest load with valid runs; 0 if there is none. */
double over_highest_load(const struct over_points *p, const char *where, const char *workload);

#endif
