/* SPDX-License-Identifier: MIT */
/*
 * Rows per second: the shares that workers hand over become rows of the result, on the thread that
 * called load_run.
 */
#ifndef WEIR_LOAD_SECONDS_H
#define WEIR_LOAD_SECONDS_H

#include "load/run.h"
#include "load/worker.h"

/** Collect rows into `result` until all workers[0..n) have handed over their last second. 0 or
 *  WEIR_ENOMEM, in which case rows are missing and run->abort is set; it waits for the workers
 *  in both cases. */
int seconds_collect(struct run_shared *run, struct worker *workers, int n,
    const struct load_hooks *hooks, struct load_result *result);

#endif
