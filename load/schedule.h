/* SPDX-License-Identifier: MIT */
/*
 * Generates the send schedule: the intended times of all requests. They depend only on the plan and
 * its seed.
 *
 * Arrivals of a process with rate 1 are drawn, with exponential or equal gaps, and mapped to real
 * time by the inverse of the integrated rate (time rescaling, Cinlar 1975), so ramps and steps are
 * exact. With bursts, the rate of the phase is multiplied by a factor that depends on the state of
 * a two-state Markov chain. The chain runs in real time, so the mean length of a burst is the same
 * at any rate. A trace has its own send times; phases then define only the length of the run and
 * the names of its parts, and times after the end of the run are ignored.
 *
 * The schedule is an iterator, not an array, so its memory does not grow with the length of the
 * run. The same plan and seed yield exactly the same arrivals on every thread. Arrival number k has
 * the same class, request and random bits at any rate.
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
	/* index of the request in its class; if the class is in_order, the number of earlier
	 * arrivals of the class modulo n_requests */
	int request;
	uint64_t random; /* 64 random bits for all other random decisions about this arrival */
};

struct load_schedule;

/** Create a schedule, positioned before its first arrival. `plan` must outlive the schedule, and
 * the classes of the plan must be sealed. Returns 0 or WEIR_ENOMEM. Free it with
 * load_schedule_free, which accepts NULL. */
int load_schedule_new(const struct load_plan *plan, struct load_schedule **out);
void load_schedule_free(struct load_schedule *s);

/** Generate the next arrival. Returns false after the last. One thread per schedule. The call costs
 * less than 100 ns. */
bool load_schedule_next(struct load_schedule *s, struct load_arrival *a);

#endif
