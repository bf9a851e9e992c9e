/* SPDX-License-Identifier: MIT */
/* Writes the tables of the overload report, in page order. Each function writes complete
 * elements. */
#ifndef WEIR_REPORT_OVERLOAD_TABLES_H
#define WEIR_REPORT_OVERLOAD_TABLES_H

#include <stdio.h>

#include "report/overload/points.h"

/** Return the policy that the report is about: weir, or the first policy if there are no results of
 * weir. Returns NULL if `where` has no policies. */
const char *over_subject(const struct over_points *p, const char *where);

/** Write a sentence about how many targets the subject meets. Sets `*level` to "ok", "warn" or
 * "plain". Returns `buf`. */
char *over_verdict(
    const struct over_points *p, const char *where, char *buf, size_t size, const char **level);

/** Write the table of targets: a row per target, with the limit, the result of the subject and its
 * worst point, and the results of the other policies. */
void over_target_table(FILE *out, const struct over_points *p, const char *where);

/** Write the goodput table: a row per policy and a column per load, with the range of the
 * rounds. */
void over_goodput_table(
    FILE *out, const struct over_points *p, const char *where, const char *workload);

/** Write the class table: a row per policy, with the success rate of each class at `load`. */
void over_class_table(FILE *out, const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load);

/** Write the table of details, which is collapsed by default: a row per policy and load, and a
 * column per known metric, with medians and ranges. */
void over_detail_table(
    FILE *out, const struct over_points *p, const char *where, const char *workload);

#endif
