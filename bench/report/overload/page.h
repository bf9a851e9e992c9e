/* SPDX-License-Identifier: MIT */
/*
 * The report on an overload evaluation: one HTML page that needs nothing else and runs no program. Light and dark
 * follow the reader's system. Texts of the rows are escaped.
 */
#ifndef WEIR_REPORT_OVERLOAD_PAGE_H
#define WEIR_REPORT_OVERLOAD_PAGE_H

#include <stdio.h>

#include "report/overload/rows.h"

/** Write the report on `rows` (at least one) to `out`. 0 or WEIR_ENOMEM; that all was written is for the caller to ask
 *  `out`. */
int over_page(const struct over_rows *rows, FILE *out);

#endif
