/* SPDX-License-Identifier: MIT */
/*
 * Joins several runs of one plan (the trials of a search, or the rounds of a sweep) into one.
 *
 * The joined plan has the phases of all runs. The joined result has the results of all runs, with
 * times counted from the start of the first run. It is void if no phase of any run counts. Plain
 * data; one thread.
 */
#ifndef WEIR_LOAD_JOINED_H
#define WEIR_LOAD_JOINED_H

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/**
 * Appends the phases and results of one run to `plan` and `result`. Before the first call, both are
 * zero except for members that all runs share. Takes ownership of the contents of `from` and zeroes
 * it, even on failure. Returns 0, WEIR_EINVAL (more than LOAD_PHASES_MAX phases), WEIR_ENOMEM.
 */
int load_join(struct load_plan *plan, struct load_result *result, const struct load_phase *phase,
    struct load_result *from);

#endif
