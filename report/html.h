/* SPDX-License-Identifier: MIT */
/*
 * Writes the report on load runs: one self-contained HTML file that needs neither a network nor
 * another program.
 *
 * The charts are SVG. A short script shows the values under the pointer and does nothing else.
 * Light or dark mode is chosen by the reader's system; print is always light. A strict content
 * security policy prevents the page from loading or running anything else. All texts from the run
 * files are escaped.
 */
#ifndef WEIR_REPORT_HTML_H
#define WEIR_REPORT_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "report/rundata.h"

/** Maximum number of runs in a report. With this limit, at most two runs share a line style. */
#define REPORT_RUNS_MAX 16

/**
 * Write the report on run[0..n_runs), n_runs at least 1, to `out`; the first run is the baseline.
 * With `force`, void runs are compared, too. Returns 0 or WEIR_ENOMEM; the caller checks `out` for
 * write errors. Takes about 50 ms per run.
 */
int report_html(const struct rundata *run, int n_runs, bool force, FILE *out);

#endif
