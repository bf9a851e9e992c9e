/* SPDX-License-Identifier: MIT */
/*
 * The engine: runs a plan and measures the results.
 *
 * Each of the plan->threads threads has an epoll loop and its share of the connections. Each thread
 * iterates over the whole schedule and sends every n-th arrival, where n is the number of threads.
 * A request that is due is sent on an idle connection or on a new one, or waits in the thread's
 * queue; its latency includes the wait. The calling thread collects one row per second from all
 * threads.
 *
 * A retry is sent after the plan's backoff; Retry-After is ignored. Sessions exist only in an open
 * loop. In a closed loop each connection stands for `pipeline` users that never pause, or the plan
 * has a number of users that think between pages and share the connections.
 */
#ifndef WEIR_LOAD_RUN_H
#define WEIR_LOAD_RUN_H

#include <stdatomic.h>

#include <weir/error.h>

#include "load/plan.h"
#include "load/result.h"

struct load_hooks {
	void *arg;
	/** Called after each second, on the thread that called load_run. May be NULL. */
	void (*second)(void *arg, const struct load_second *row);
	/** Set by any thread or signal handler to stop the run. The run then sends nothing more and
	 * ends without waiting for responses. May be NULL. */
	atomic_bool *stop;
};

/**
 * Run the plan and block until the run is over. `result` must be zero; the caller frees it, even on
 * failure. Late responses, refused connections and a server that exits unexpectedly are results,
 * not failures. Returns 0, or WEIR_EINVAL (incomplete plan, unknown host), WEIR_ENOMEM or WEIR_ESYS
 * (no TLS, no thread, no descriptors for the connections) with a message in err->text.
 */
int load_run(const struct load_plan *plan, const struct load_hooks *hooks,
    struct load_result *result, struct weir_err *err);

#endif
