/* SPDX-License-Identifier: MIT */
/* Describes knob rows, for `describe`, `explain` and the schema. */
#ifndef WEIR_CONFIG_ROWS_H
#define WEIR_CONFIG_ROWS_H

#include <stdbool.h>
#include <stdio.h>

#include <weir/knob.h>

/** Return the value of `row` in `base` in YAML form, with quotes around texts that need them. The
 *  caller frees it. Returns NULL if out of memory. */
char *row_value(const struct weir_knob *row, const void *base);

/** Write `text` as a YAML value: without quotes where that is safe, else in double quotes. */
void row_quote(FILE *out, const char *text);

/** Write the form that the row accepts: "a size: 64KiB, 1MB", "one of a, b". */
void row_type(FILE *out, const struct weir_knob *row);

/** Write the bounds of the row, as in "1 to 1024". Returns false if it has none. */
bool row_range(FILE *out, const struct weir_knob *row);

/** Write the lower or the upper bound of a row that has bounds. */
void row_least(FILE *out, const struct weir_knob *row);
void row_most(FILE *out, const struct weir_knob *row);

/** Return whether the row is a number with bounds. */
bool row_has_range(const struct weir_knob *row);

#endif
