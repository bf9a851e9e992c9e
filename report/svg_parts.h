/* SPDX-License-Identifier: MIT */
/*
 * The legend and the value table of a chart. The table is for readers who prefer tables or use a
 * screen reader. Private to svg*.c; see chart.h.
 */
#ifndef WEIR_REPORT_SVG_PARTS_H
#define WEIR_REPORT_SVG_PARTS_H

#include "report/chart.h"

/** Write the legend. Writes nothing for a chart with one series. */
void svg_legend(FILE *out, const struct chart *c);

/** Write a collapsed table of the values: a column per series if all have the same x values,
 * otherwise a row per value. */
void svg_table(FILE *out, const struct chart *c);

#endif
