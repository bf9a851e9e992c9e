/* SPDX-License-Identifier: MIT */
/*
 * The report: runs as one HTML file that needs nothing else, no network and no program.
 *
 * All charts are drawn here (SVG); the short script in the page only shows values under the pointer.
 * Light and dark follow the reader's system, print is light. A strict content policy in the page
 * itself forbids it to load or run anything from elsewhere. All texts of the runs are escaped.
 */
#ifndef WEIR_REPORT_HTML_H
#define WEIR_REPORT_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "report/rundata.h"

/** Most runs of one report: two rounds of styles. */
#define REPORT_RUNS_MAX 16

/**
 * Write the report on run[0..n_runs), n_runs at least 1, to `out`; the first is the baseline. `force`:
 * compare void runs, too. 0 or WEIR_ENOMEM; that all was written is for the caller to ask `out`. About
 * 50 ms a run.
 */
int report_html(const struct rundata *run, int n_runs, bool force, FILE *out);

#endif
