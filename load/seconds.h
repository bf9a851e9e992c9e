/* SPDX-License-Identifier: MIT */
/*
 * Merges the per-second counters that workers hand over into the rows of the result, on the thread
 * that called load_run.
 */
#ifndef WEIR_LOAD_SECONDS_H
#define WEIR_LOAD_SECONDS_H

#include "load/run.h"
#include "load/worker.h"

/** Collect rows in `result` until all workers[0..n) have handed over their last second. Returns 0
 * or WEIR_ENOMEM. If memory runs out, the function sets run->abort and drops rows. It still waits
 * for the workers, unless memory ran out at its start. */
int seconds_collect(struct run_shared *run, struct worker *workers, int n,
    const struct load_hooks *hooks, struct load_result *result);

#endif
