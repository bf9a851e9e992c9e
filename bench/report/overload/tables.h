/* SPDX-License-Identifier: MIT */
/* The tables of the overload report, in its order; each writes whole elements. */
#ifndef WEIR_REPORT_OVERLOAD_TABLES_H
#define WEIR_REPORT_OVERLOAD_TABLES_H

#include <stdio.h>

#include "report/overload/points.h"

/** The policy that the report is about: weir, else the first. NULL when `where` has none. */
const char *over_subject(const struct over_points *p, const char *where);

/** One sentence on how many targets the subject meets. `*level` becomes "ok", "warn" or "plain". Returns `buf`. */
char *over_verdict(
    const struct over_points *p, const char *where, char *buf, size_t size, const char **level);

/** A row per target: limit, how the subject stands to it, and where it is worst; what the others have. */
void over_target_table(FILE *out, const struct over_points *p, const char *where);

/** A row per policy, a column per load: goodput, with its range. */
void over_goodput_table(
    FILE *out, const struct over_points *p, const char *where, const char *workload);

/** A row per policy: success of each class at `load`. */
void over_class_table(FILE *out, const struct over_points *p, const struct over_rows *rows,
    const char *where, const char *workload, double load);

/** A row per policy and load, a column per metric that is known: medians and ranges, folded away. */
void over_detail_table(
    FILE *out, const struct over_points *p, const char *where, const char *workload);

#endif
