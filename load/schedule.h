/* SPDX-License-Identifier: MIT */
/*
 * Generates the send schedule: the intended times of all requests, which depend only on the plan
 * and its seed.
 *
 * A unit-rate process is drawn (exponential or equal gaps) and stretched by the inverse of the
 * integrated rate (time rescaling, Cinlar 1975), so ramps and steps are exact. With bursts the rate
 * of the phase is multiplied by the factor of a two-state Markov chain that runs in real time: a
 * burst has the same mean length at any rate. A trace has its own times. In that case the phases
 * define only the length of the run and the names of its parts, and times after the end of the run
 * are ignored.
 *
 * The schedule is an iterator, not an array, so a run of a day needs no memory. The same plan and
 * seed give exactly the same arrivals on every thread. Arrival number k has the same class, request
 * and random bits whatever the rates.
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
	/* index in its class; if the class is in_order, the number of its earlier arrivals modulo
	 * n_requests */
	int request;
	uint64_t random; /* 64 random bits for the remaining random decisions of this arrival */
};

struct load_schedule;

/** Create a schedule, positioned at its beginning. `plan` must outlive it, and its classes must be
 * sealed. Returns 0 or WEIR_ENOMEM. Free it with load_schedule_free, which accepts NULL. */
int load_schedule_new(const struct load_plan *plan, struct load_schedule **out);
void load_schedule_free(struct load_schedule *s);

/** Generate the next arrival. Returns false after the last. One thread per schedule. The call costs
 * less than 100 ns. */
bool load_schedule_next(struct load_schedule *s, struct load_arrival *a);

#endif
