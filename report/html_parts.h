/* SPDX-License-Identifier: MIT */
/* The parts of the report page, in page order; private to html*.c. Each function writes complete
 * elements. */
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

/** Summarise the result of a run in one sentence. Sets *level to "ok", "warn", "bad" or "plain". */
void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level);

/** Write the summary table: a row per run, with the results at its best load point and at the
 * highest load. */
void html_summary_table(FILE *out, const struct rundata *run, int n_runs);

/* ---- html_tables.c ---- */

/** Write the comparison table: a row per load and a column per metric, with ratios, intervals and
 * verdicts. */
void html_comparison(FILE *out, const struct comparison *c);

/** Write the class table: a row per load and class. Returns 0 or WEIR_ENOMEM. */
int html_classes(FILE *out, const struct rundata *run);

/** Write the decisions that have pins, with the pin numbers and the reasons. */
void html_decisions(FILE *out, const struct rundata *run, const struct server_view *view);

/** Write the origin of a run: server, command, plan, machine and version. */
void html_about(FILE *out, const struct rundata *run);

/* ---- html_cells.c: parts of tables ---- */

/** Begin a table that can be scrolled separately from the page; `caption` is also its label for
 * screen readers. End it with html_table_end. */
void html_table(FILE *out, const char *caption, const char *const *heading, int n);
void html_table_end(FILE *out);

void html_row(FILE *out, const char *heading);
void html_cell(FILE *out, const char *text);
void html_cell_value(FILE *out, char *(*print)(char *, double), double value);

#endif
