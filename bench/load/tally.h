/* SPDX-License-Identifier: MIT */
/*
 * What one worker counted: per phase and class for the result, and per second for the rows.
 *
 * A tally is written by its worker alone and read by the caller of load_run after the worker was
 * joined. Seconds are handed over while both run: a finished one goes into `ready` under the lock
 * of the seconds, and comes back cleared as `spare`, so that a worker allocates only while it has
 * to.
 */
#ifndef WEIR_LOAD_TALLY_H
#define WEIR_LOAD_TALLY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>

#include "load/plan.h"
#include "load/result.h"
#include "load/tickets.h"

/** One worker's share of one second. */
struct tally_second {
	struct tally_second *next;
	int64_t number; /* 0, 1 ... since the start of the run */
	int64_t in_flight, connections, lag_max_ns;
	struct tally_second_class {
		uint64_t offered, outcome[LOAD_N_OUTCOMES], retries;
		struct hdr latency; /* of ok and degraded */
	} class[];                  /* plan->n_classes */
};

/** Seconds of all workers on their way to the caller. */
struct tally_exchange {
	pthread_mutex_t lock;
	pthread_cond_t news;
	int n_running WEIR_GUARDED_BY(lock); /* workers that will publish more */
};

struct tally {
	const struct load_plan *plan;
	struct load_phase_result *phase; /* [plan->n_phases]; those of warm-ups stay zero */
	struct load_class_result warmup; /* where their counts go, and nobody looks */
	uint64_t offered, finished;      /* all, warm-ups too */
	uint64_t connects;
	bool no_memory; /* a histogram is missing: the run has to end */
	struct tally_second *now;

	struct tally_exchange *exchange;
	struct tally_second *ready WEIR_GUARDED_BY(exchange->lock); /* oldest first */
	struct tally_second *spare WEIR_GUARDED_BY(exchange->lock);
	int64_t published WEIR_GUARDED_BY(exchange->lock); /* seconds handed over */
};

/** 0 or WEIR_ENOMEM; tally_fini in both cases. */
int tally_init(struct tally *t, const struct load_plan *plan, struct tally_exchange *exchange);
void tally_fini(struct tally *t);

/** The counters that requests of `ticket` belong to. */
struct load_class_result *tally_of(struct tally *t, const struct ticket *ticket);

/** A request became due. */
void tally_offered(struct tally *t, const struct ticket *ticket);

/** It ended, `latency_ns` after its intended time. */
void tally_ended(
    struct tally *t, const struct ticket *ticket, enum load_outcome outcome, int64_t latency_ns);

/** Another attempt of it is made now. */
void tally_retried(struct tally *t, const struct ticket *ticket);

/** The generator acted on a request of `phase` so late. */
void tally_lag(struct tally *t, int phase, int64_t lag_ns);

/** The run is in second `number` now: hand over what is before it. */
void tally_advance(struct tally *t, int64_t number, int64_t connections);

/** The last second goes, too, and no more will come. */
void tally_close(struct tally *t, int64_t connections);

/** The oldest second that the worker handed over, or NULL; give it back with tally_give_back.
 *  Any thread, holding the lock. */
struct tally_second *tally_take(struct tally *t);
void tally_give_back(struct tally *t, struct tally_second *s);

#endif
