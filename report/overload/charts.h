/* SPDX-License-Identifier: MIT */
/*
 * Builds the charts of the overload report. Functions that return a chart create a new one, which
 * the caller frees with chart_free; they return NULL if out of memory. A chart without values
 * (chart_has_values) need not be drawn. Void runs are not shown. A policy has the same style in all
 * charts of one `where`.
 */
#ifndef WEIR_REPORT_OVERLOAD_CHARTS_H
#define WEIR_REPORT_OVERLOAD_CHARTS_H

#include "report/chart.h"
#include "report/overload/points.h"

/** Show a metric against the load, which is on a logarithmic axis. There is a line per policy, with
 * the medians and the ranges of the rounds. */
struct chart *over_chart_load(const struct over_points *p, const char *where, const char *workload,
    enum over_metric metric, const char *title);

/** Show goodput over time at `load`, with a line per policy: the means of the rounds. */
struct chart *over_chart_time(const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load);

/** Show the number of threads over time at `load`, with a line per policy, from its first valid
 * round. */
struct chart *over_chart_threads(
    const struct over_points *p, const char *where, const char *workload, double load);

/** Return the highest load with valid runs; 0 if there is none. */
double over_highest_load(const struct over_points *p, const char *where, const char *workload);

#endif
