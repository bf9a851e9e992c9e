/* SPDX-License-Identifier: MIT */
/*
 * Runs the handlers of weir in servers other than weir: a chain of stages that run in the calling
 * thread.
 *
 * The baselines must differ from weir only in how they use threads. They therefore run the stages
 * `burn`, `delay`, `file.read` and `respond` themselves instead of imitating them. The stages are
 * in a graph without a source, and all are inline. Weir does not allow a blocking stage to be
 * inline, but a handler may block in a server with a thread per connection. Blocking stages are
 * therefore registered a second time, without the flag that marks them as blocking.
 *
 * Only the main thread may call work_open and work_close. Between these calls, each thread attaches
 * itself, calls work_run, and detaches.
 */
#ifndef WEIR_BENCH_PEERS_WORK_H
#define WEIR_BENCH_PEERS_WORK_H

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/http.h>

/** Maximum number of stages of a chain. */
#define WORK_STAGES_MAX 8

struct work {
	struct weir_graph *graph;
	struct weir_stage *door; /* the first stage of the chain */
};

/** Build and start the chain word[0..n). Each word is "TYPE" or "TYPE:KNOB=VALUE,KNOB=VALUE", with
 * knobs of `with:`. Returns 0, or a WEIR_E code with a message in errs. */
int work_open(struct work *w, char *const *word, int n, struct weir_errs *errs);

/** Call after all threads have detached. Returns the number of events lost according to the graph's
 * counters; any value other than 0 is a bug. */
int64_t work_close(struct work *w);

/** Run `req`, whose slices are set, through the chain. On return the request is finished and has
 * its response. Blocks while the handlers block. Only threads attached by weir_thread_attach may
 * call it. */
void work_run(const struct work *w, struct weir_http_request *req);

#endif
