/* SPDX-License-Identifier: MIT */
/*
 * Writes the report on runs: one self-contained HTML file that needs neither a network nor another
 * program.
 *
 * The charts are SVG; the short script in the page only shows the values under the pointer. Light
 * and dark mode follow the reader's system; print is always light. A strict content security policy
 * forbids the page to load or run anything from elsewhere. All texts from the run files are
 * escaped.
 */
#ifndef WEIR_REPORT_HTML_H
#define WEIR_REPORT_HTML_H

#include <stdbool.h>
#include <stdio.h>

#include "report/rundata.h"

/** Maximum runs in one report, so that a line style is shared by at most two. */
#define REPORT_RUNS_MAX 16

/**
 * Write the report on run[0..n_runs), n_runs at least 1, to `out`; the first run is the baseline.
 * With `force`, void runs are compared, too. Returns 0 or WEIR_ENOMEM; the caller checks `out` for
 * write errors. Takes about 50 ms per run.
 */
int report_html(const struct rundata *run, int n_runs, bool force, FILE *out);

#endif
