/* SPDX-License-Identifier: MIT */
/*
 * The charts and tables of the overload report, in page order.
 *
 * Functions that return a chart create a new one, which html_chart draws and frees; they return
 * NULL if out of memory. Void runs are not shown in charts. A policy has the same style in all
 * charts of the server, and in all charts of the simulator. Each table function writes complete
 * elements.
 */
#ifndef WEIR_REPORT_OVERLOAD_PARTS_H
#define WEIR_REPORT_OVERLOAD_PARTS_H

#include "report/chart.h"
#include "report/overload/points.h"

/** Show a metric against the load, which is on a logarithmic axis. There is a line per policy, with
 * the medians and the ranges of the rounds. */
struct chart *over_chart_load(
    const struct over_work *w, enum over_metric metric, const char *title);

/** Show goodput over time at `load`, with a line per policy: the means of the rounds. With
 * `threads`, show the number of threads instead, from the first valid round. */
struct chart *over_chart_time(const struct over_work *w, double load, bool threads);

/** Summarise how many targets the first of the policies meets. Sets `*level` to "ok", "warn" or
 * "plain". Returns `buf`. */
char *over_verdict(
    const struct over_points *p, const char *where, char *buf, size_t size, const char **level);

/** Write the table of targets: a row per target, with the limit, the result of the first policy and
 * its worst point, and the results of the other policies. */
void over_target_table(FILE *out, const struct over_points *p, const char *where);

/** Write the goodput table: a row per policy and a column per load, with the range of the
 * rounds. */
void over_goodput_table(FILE *out, const struct over_work *w);

/** Write the class table: a row per policy, with the success rate of each class at the highest
 * load. */
void over_class_table(FILE *out, const struct over_work *w);

/** Write the table of details, which is collapsed by default: a row per policy and load, and a
 * column per known metric, with medians and ranges. */
void over_detail_table(FILE *out, const struct over_work *w);

#endif
