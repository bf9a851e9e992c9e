/* SPDX-License-Identifier: MIT */
/*
 * The send schedule: every intended send time, fixed by the plan and its seed.
 *
 * A unit-rate process is drawn (exponential or equal gaps) and stretched by the inverse of the
 * integrated rate (time rescaling, Cinlar 1975), so that ramps and steps are exact. With bursts the
 * rate is that of the phase times the factor of a two-state Markov chain, whose times are real
 * ones: a burst has the same mean length at any rate. A trace has its own times: phases only say
 * how long the run is and what its parts are called; times after its end are not sent.
 *
 * It is an iterator, not an array, so that a run of a day needs no memory; the same plan and seed
 * give the same arrivals to the last bit, on every thread that asks. Arrival number k has the same
 * class, request and random bits whatever the rates.
 */
#ifndef WEIR_LOAD_SCHEDULE_H
#define WEIR_LOAD_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "load/plan.h"

struct load_arrival {
	uint64_t number; /* 0, 1, ... */
	int64_t at_ns;   /* since the start of the run, ascending */
	int phase;       /* index in plan->phase */
	int class_id;    /* index in plan->class */
	int request;     /* of its class; in_order: running number of the class modulo n_requests */
	uint64_t random; /* 64 bits of its own, for what else is random about it */
};

struct load_schedule;

/** A schedule at its beginning. `plan` must outlive it, and its classes be sealed. 0 or
 *  WEIR_ENOMEM; free it (NULL is allowed). */
int load_schedule_new(const struct load_plan *plan, struct load_schedule **out);
void load_schedule_free(struct load_schedule *s);

/** The next arrival; false after the last. One thread per schedule. Below 100 ns. */
bool load_schedule_next(struct load_schedule *s, struct load_arrival *a);

#endif
