/* SPDX-License-Identifier: MIT */
/* The parts of pages: those that all pages share (html_parts.c), and the sections of the report on
 * load runs, in page order. Each function writes complete elements; all texts are escaped. */
#ifndef WEIR_REPORT_HTML_PARTS_H
#define WEIR_REPORT_HTML_PARTS_H

#include "report/chart.h"
#include "report/compare.h"
#include "report/rundata.h"
#include "report/server.h"

/* ---- html_style.c, html_script.c ---- */
extern const char html_style[];
extern const char html_script[];

/* ---- html_parts.c ---- */

/** A page that is being written. */
struct html_page {
	FILE *out;
	int figures; /* number of figures so far, used in their ids */
	bool failed; /* a chart is missing, since memory ran out */
};

/** Write everything before the contents: the head with `css` added to the style, and the brand
 * "weir `kind`". `of` is what the page is about, or "". */
void html_begin(FILE *out, const char *of, const char *kind, bool script, const char *css);

/** Write the sentence `text` in a box, preceded by the name `of` unless that is "". `level` is a
 * CSS class: "ok", "warn", "bad", "plain" or "void". */
void html_verdict(FILE *out, const char *level, const char *of, const char *text);

/** Draw a chart, unless it is empty, and free it. */
void html_chart(struct html_page *p, struct chart *c);

/** A column of a table. `print` is NULL if it has no numbers. */
struct html_column {
	const char *heading;
	format_fn *print;
};

/** Begin a table that can be scrolled separately from the page; `caption` is also its label for
 * screen readers. End it with html_table_end. */
void html_table(FILE *out, const char *caption, const struct html_column *column, int n);
void html_table_end(FILE *out);

/** Begin a row, add a cell, or end the row with a cell for each of `n` columns. */
void html_row(FILE *out, const char *heading);
void html_cell(FILE *out, const char *text);
void html_cell_value(FILE *out, format_fn *print, double value);
void html_values(FILE *out, const struct html_column *column, int n, const double *value);

/** Write a line of a list of terms, unless `text` is NULL or empty. */
void html_term(FILE *out, const char *name, const char *text);

/* ---- html_summary.c ---- */

/** Summarise the result of a run in one sentence. Sets *level to "ok", "warn", "bad" or "plain". */
void html_run_sentence(const struct rundata *run, char *buf, size_t size, const char **level);

/** Write the summary of a single run: its main figures as tiles, then how certain they are. */
void html_summary(FILE *out, const struct rundata *run);

/** Write the summary table: a row per run, with the results at its best load point and at the
 * highest load. */
void html_summary_table(FILE *out, const struct rundata *run, int n_runs);

/* ---- html_tables.c ---- */

/** Write the comparison table: a row per load and a column per metric, with ratios, intervals and
 * verdicts. */
void html_comparison(FILE *out, const struct comparison *c);

/** Write the class table: a row per load and class. Returns 0 or WEIR_ENOMEM. */
int html_classes(FILE *out, const struct rundata *run);

/** Write the decisions that have pins, with the pin numbers and the reasons. Writes nothing if
 * there are none. */
void html_decisions(FILE *out, const struct rundata *run, const struct server_view *view);

/** Write the origin of a run: server, command, plan, machine and version. */
void html_about(FILE *out, const struct rundata *run);

#endif
