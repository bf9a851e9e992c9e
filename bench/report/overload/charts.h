/* SPDX-License-Identifier: MIT */
/*
 * The charts of the overload report. Each returns a new chart (chart_free), NULL when memory ran out; one without
 * values (chart_has_values) need not be drawn. Void runs are in none. A policy has the same style in all charts of `where`.
 */
#ifndef WEIR_REPORT_OVERLOAD_CHARTS_H
#define WEIR_REPORT_OVERLOAD_CHARTS_H

#include "report/chart.h"
#include "report/overload/points.h"

/** A metric against the load (logarithmic), a line per policy: medians, with the range of the rounds. */
struct chart *over_chart_load(const struct over_points *p, const char *where, const char *workload,
    enum over_metric metric, const char *title);

/** Goodput over time at `load`, a line per policy: means of the rounds. */
struct chart *over_chart_time(const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load);

/** Threads over time at `load`, a line per policy: the first round that counts. */
struct chart *over_chart_threads(
    const struct over_points *p, const char *where, const char *workload, double load);

/** The highest load with runs that count; 0: none. */
double over_highest_load(const struct over_points *p, const char *where, const char *workload);

#endif
