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

/** Show RUN_GOODPUT, RUN_P99 or RUN_P50 against offered load, with a line per run. The chart of
 * RUN_GOODPUT also has the goodput of an ideal server. For a single run, that chart has the trials
 * of a search as a series of its own, and the chart of RUN_P99 has the other percentiles, too. */
struct chart *chart_by_load(const struct rundata *run, int n_runs, enum run_metric metric);

/** Show the share of requests served against offered load: a line per class if `class_id` is -1 and
 * n_runs 1, or a line per run for the class `class_id` of the first run. */
struct chart *chart_served(const struct rundata *run, int n_runs, int class_id);

/** Show the latency at all percentiles. If `point` is a load point of the first run, the chart has
 * one curve per run, at that load. If `point` is -1, `n_runs` must be 1, and the chart has a curve
 * for each of up to six load points. */
struct chart *chart_tail(const struct rundata *run, int n_runs, int point);

/** Number of charts of one run over time: outcomes, goodput, latency and requests in flight as seen
 * by the clients, then one for each series of the server's stages. */
#define CHARTS_BY_TIME (4 + SERVER_N_SERIES)

/** Show chart `which` of 0..CHARTS_BY_TIME-1. */
struct chart *chart_by_time(const struct rundata *run, const struct server_view *view, int which);

/** Return whether the decision was made during the run. Such decisions have pins, numbered from 1
 * in chronological order. */
bool chart_decision_shown(const struct rundata *run, const struct server_decision *d);

#endif
