/* SPDX-License-Identifier: MIT */
/*
 * What belongs to a chart beside the drawing: its legend and the table of the same values, for those who
 * read tables, by eye or by ear. Inside of svg*.c; see chart.h.
 */
#ifndef WEIR_REPORT_SVG_PARTS_H
#define WEIR_REPORT_SVG_PARTS_H

#include "report/chart.h"

/** Nothing for a chart of one series that needs no telling apart. */
void svg_legend(FILE *out, const struct chart *c);

/** A folded table: a column per series where all have the same x, else a row per value. */
void svg_table(FILE *out, const struct chart *c);

#endif
