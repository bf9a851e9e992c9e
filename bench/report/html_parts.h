/* SPDX-License-Identifier: MIT */
/* The parts of the report's page, in its order; inside of html*.c. Each writes whole elements. */
#ifndef WEIR_REPORT_HTML_PARTS_H
#define WEIR_REPORT_HTML_PARTS_H

#include <stdio.h>

#include "report/compare.h"
#include "report/rundata.h"
#include "report/server.h"

/* ---- html_style.c, html_script.c ---- */
extern const char html_style[];
extern const char html_script[];

/* ---- html_summary.c ---- */

/** What one run says by itself, in a sentence. `level` becomes "ok", "warn", "bad" or "plain". */
void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level);

/** A row per run: what it was, its best and its worst. */
void html_summary_table(FILE *out, const struct rundata *run, int n_runs);

/* ---- html_tables.c ---- */

/** Ratios with intervals and verdicts: a row per load, a column per metric. */
void html_comparison(FILE *out, const struct comparison *c);

/** A row per load and class. 0 or WEIR_ENOMEM. */
int html_classes(FILE *out, const struct rundata *run);

/** The decisions that have pins, with the same numbers, and why they were taken. */
void html_decisions(FILE *out, const struct rundata *run, const struct server_view *view);

/** Where a run comes from and how it was made. */
void html_about(FILE *out, const struct rundata *run);

/* ---- html_cells.c: small pieces of tables ---- */

/** Open a table that scrolls by itself; `caption` is said to those who cannot see it. Close with
 *  html_table_end. */
void html_table(FILE *out, const char *caption, const char *const *heading, int n);
void html_table_end(FILE *out);

void html_row(FILE *out, const char *heading);
void html_cell(FILE *out, const char *text);
void html_cell_value(FILE *out, char *(*print)(char *, double), double value);

#endif
