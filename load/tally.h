/* SPDX-License-Identifier: MIT */
/*
 * The counters of one worker: per phase and class for the result, and per second for the rows.
 *
 * A tally is written only by its worker. The caller of load_run reads it after joining the worker.
 * Finished seconds are handed over during the run: under the lock of the exchange, the worker
 * appends them to `ready`, and the caller returns them through `spare` for reuse.
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

/** Shared by all workers, which hand over their finished seconds to the caller of load_run. */
struct tally_exchange {
	pthread_mutex_t lock;
	pthread_cond_t news;
	/* number of workers that have not handed over their last second */
	int n_running WEIR_GUARDED_BY(lock);
};

struct tally {
	const struct load_plan *plan;
	struct load_phase_result *phase; /* [plan->n_phases]; stays zero for warm-up phases */
	struct load_class_result warmup; /* collects the counts of warm-ups, which are discarded */
	uint64_t offered, finished;      /* requests, including warm-ups */
	uint64_t connects;
	bool no_memory; /* an allocation failed, so the run must end */
	struct tally_second *now;

	struct tally_exchange *exchange;
	struct tally_second *ready WEIR_GUARDED_BY(exchange->lock); /* oldest first */
	struct tally_second *spare WEIR_GUARDED_BY(exchange->lock);
	int64_t published WEIR_GUARDED_BY(exchange->lock); /* seconds handed over */
};

/** Initialise a tally. Returns 0 or WEIR_ENOMEM; call tally_fini in both cases. */
int tally_init(struct tally *t, const struct load_plan *plan, struct tally_exchange *exchange);
void tally_fini(struct tally *t);

/** Return the counters of the phase and class of `ticket`. */
struct load_class_result *tally_of(struct tally *t, const struct ticket *ticket);

/** Count a request that became due. */
void tally_offered(struct tally *t, const struct ticket *ticket);

/** Count a request that ended with `outcome`, `latency_ns` after its intended time. */
void tally_ended(
    struct tally *t, const struct ticket *ticket, enum load_outcome outcome, int64_t latency_ns);

/** Count another attempt of a request. */
void tally_retried(struct tally *t, const struct ticket *ticket);

/** Record that a request of `phase` was sent `lag_ns` late. */
void tally_lag(struct tally *t, int phase, int64_t lag_ns);

/** Hand over all seconds before the current one, `number`. */
void tally_advance(struct tally *t, int64_t number, int64_t connections);

/** Hand over the last second. Do not call tally_advance afterwards. */
void tally_close(struct tally *t, int64_t connections);

/** Return the oldest second that the worker has handed over and the caller has not taken yet, or
 * NULL if there is none. The caller must return it with tally_give_back. The caller of either
 * function must hold the lock of the exchange. */
struct tally_second *tally_take(struct tally *t);
void tally_give_back(struct tally *t, struct tally_second *s);

#endif
