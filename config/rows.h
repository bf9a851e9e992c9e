/* SPDX-License-Identifier: MIT */
/* Knob rows in words, for `describe`, `explain` and the schema. */
#ifndef WEIR_CONFIG_ROWS_H
#define WEIR_CONFIG_ROWS_H

#include <stdbool.h>
#include <stdio.h>

#include <weir/knob.h>

/** The value of `row` in `base` as it stands in YAML: texts quoted where they need it. The caller
 *  frees it; NULL when out of memory. */
char *row_value(const struct weir_knob *row, const void *base);

/** `text` as a YAML value into `out`: bare where that is safe, else in double quotes. */
void row_quote(FILE *out, const char *text);

/** What may be written: "a size: 64KiB, 1MB", "one of a, b". */
void row_type(FILE *out, const struct weir_knob *row);

/** "1 to 1024", "at least 1"; nothing when there are no bounds. Returns whether it wrote. */
bool row_range(FILE *out, const struct weir_knob *row);

/** Is the row a number with bounds? */
bool row_has_range(const struct weir_knob *row);

#endif
