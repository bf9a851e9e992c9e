/* SPDX-License-Identifier: MIT */
/*
 * Several runs of one plan become one: trials of a search, rounds, a sweep.
 *
 * The joined plan has the phases of all of them, the joined result their results, with seconds counted
 * from the start of the first. Plain data; one thread.
 */
#ifndef WEIR_LOAD_JOINED_H
#define WEIR_LOAD_JOINED_H

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/**
 * Append the phases and results of one run to `plan` and `result` (of none: zero but for what all runs have in
 * common). `from` is taken over and left zero, on failure freed. 0, WEIR_EINVAL (more than LOAD_PHASES_MAX phases), WEIR_ENOMEM.
 */
int load_join(struct load_plan *plan, struct load_result *result, const struct load_phase *phase,
    struct load_result *from);

#endif
