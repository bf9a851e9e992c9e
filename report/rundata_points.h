/* SPDX-License-Identifier: MIT */
/* A step of rundata_read. */
#ifndef WEIR_REPORT_RUNDATA_POINTS_H
#define WEIR_REPORT_RUNDATA_POINTS_H

#include "report/rundata.h"

/** Set point, n_points, n_trials and point_of from the phases of the run. Returns 0 or
 * WEIR_ENOMEM. */
int rundata_take_points(struct rundata *run);

#endif
