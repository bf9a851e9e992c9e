/* SPDX-License-Identifier: MIT */
/*
 * Writes the legend and the table of values of a chart. The table is for readers who prefer tables
 * or use a screen reader. Private to svg*.c; see chart.h.
 */
#ifndef WEIR_REPORT_SVG_PARTS_H
#define WEIR_REPORT_SVG_PARTS_H

#include "report/chart.h"

/** Write the legend. A chart with fewer than two series has none. */
void svg_legend(FILE *out, const struct chart *c);

/** Write a table of the values, collapsed by default. It has a column per series if all series have
 * the same x values, otherwise a row per value. */
void svg_table(FILE *out, const struct chart *c);

#endif
