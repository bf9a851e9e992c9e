/* SPDX-License-Identifier: MIT */
/*
 * Builds the charts of a report from runs, as plain data.
 *
 * Functions that return a chart create a new one, which the caller frees with chart_free; they
 * return NULL if out of memory. A chart without values (chart_has_values) need not be drawn.
 */
#ifndef WEIR_REPORT_CHARTS_H
#define WEIR_REPORT_CHARTS_H

#include "report/chart.h"
#include "report/rundata.h"
#include "report/server.h"

/* ---- all runs, by offered load (chart_load.c) ---- */

/** Show goodput against offered load, with the goodput of an ideal server. */
struct chart *chart_goodput(const struct rundata *run, int n_runs);

/** Show one metric against offered load, with a line per run. */
struct chart *chart_by_load(
    const struct rundata *run, int n_runs, enum run_metric metric, const char *title);

/** Show p50, p99 and p99.9 of one run against offered load. */
struct chart *chart_quantiles_by_load(const struct rundata *run);

/** Show the latency at all percentiles. If `point` is a load point of the first run, the chart has
 * one curve per run, at that load. If `point` is -1, `n_runs` must be 1, and the chart has a curve
 * for each of up to six load points. */
struct chart *chart_tail(const struct rundata *run, int n_runs, int point);

/* ---- one run, by time (chart_time.c) ---- */

struct chart *chart_outcomes(const struct rundata *run, const struct server_view *view);
struct chart *chart_served(const struct rundata *run, const struct server_view *view);
struct chart *chart_latency(const struct rundata *run, const struct server_view *view);
struct chart *chart_in_flight(const struct rundata *run, const struct server_view *view);
struct chart *chart_stages(
    const struct rundata *run, const struct server_view *view, enum server_series which);

/** Write the label of a pin, "work: 2 -> 4 threads". Returns `buf`. */
char *chart_decision_text(const struct server_decision *d, char *buf, size_t size);

/** Return whether the decision was made during the run. Such decisions have pins, numbered from 1
 * in chronological order. */
bool chart_decision_shown(const struct rundata *run, const struct server_decision *d);

#endif
