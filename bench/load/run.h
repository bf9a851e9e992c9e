/* SPDX-License-Identifier: MIT */
/*
 * The engine: a plan becomes a result.
 *
 * Each of plan->threads threads has an epoll loop, its share of the connections and the whole
 * schedule, of which it sends every n-th arrival. A request that is due takes an idle connection,
 * else makes one, else waits in the thread's queue, its latency counting all the while. The calling
 * thread collects a row per second from them.
 *
 * Retries wait as the plan says, whatever Retry-After says. Sessions and think times belong to the
 * open loop; in the closed one a connection is its own user and never thinks.
 */
#ifndef WEIR_LOAD_RUN_H
#define WEIR_LOAD_RUN_H

#include <stdatomic.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

/** A run whose generator was later than this at the 99th percentile of any phase is void
 *  (overload.md, evaluation protocol). */
#define LOAD_LAG_LIMIT_NS 1000000

/** Was the generator late: is the 99th percentile over the limit, and not for a single request alone? Of fewer than
 *  a hundred requests that is two of them. */
bool load_lag_late(const struct hdr *lag);

struct load_hooks {
	void *arg;
	/** After each second, on the thread that called load_run. NULL: nobody wants to know. */
	void (*second)(void *arg, const struct load_second *row);
	/** Set by anyone (a signal handler, too): stop sending, wait for no answer, return.
	 *  NULL: never. */
	atomic_bool *stop;
};

/**
 * Run the plan; blocks until it is over. `result` must be zero; it is the caller's to free, on
 * failure too. Answers late, refused connections and a server that dies are results, not failures.
 * 0, or WEIR_EINVAL (the host is not known), WEIR_ENOMEM, WEIR_ESYS (no thread, no descriptors for
 * the connections), with the sentence in err->text.
 */
int load_run(const struct load_plan *plan, const struct load_hooks *hooks,
    struct load_result *result, struct weir_err *err);

#endif
