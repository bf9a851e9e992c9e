/* SPDX-License-Identifier: MIT */
/*
 * Writes the report on an overload evaluation: one self-contained HTML page without scripts. Light
 * or dark mode is chosen by the reader's system. Texts from the rows are escaped.
 */
#ifndef WEIR_REPORT_OVERLOAD_PAGE_H
#define WEIR_REPORT_OVERLOAD_PAGE_H

#include <stdio.h>

#include "report/overload/rows.h"

/** Write the report on `rows` (at least one) to `out`. Returns 0 or WEIR_ENOMEM; the caller checks
 * `out` for write errors. */
int over_page(const struct over_rows *rows, FILE *out);

#endif
