/* SPDX-License-Identifier: MIT */
/*
 * The handlers of weir for servers that are not weir: a chain of stages that run in the caller's
 * thread.
 *
 * The baselines shall differ from weir in how they use threads and in nothing else, so they do not
 * imitate `burn`, `delay`, `file.read` and `respond`: they run them, as a graph without a source
 * whose stages are all inline. Stages that block are not allowed inline in weir; a server with a
 * thread per connection is made for them, so here they are registered once more without that flag.
 *
 * open, close: the main thread. attach, run, detach: each thread for itself, between open and close.
 */
#ifndef WEIR_BENCH_PEERS_WORK_H
#define WEIR_BENCH_PEERS_WORK_H

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/http.h>

/** Stages a chain may have. */
#define WORK_STAGES_MAX 8

struct work {
	struct weir_graph *graph;
	struct weir_stage *door; /* the first of the chain */
};

/** Build and start the chain word[0..n): "TYPE" or "TYPE:KNOB=VALUE,KNOB=VALUE", knobs of `with:`.
 *  0 or a WEIR_E code with the sentence in errs. */
int work_open(struct work *w, char *const *word, int n, struct weir_errs *errs);

/** All threads have detached. Returns events lost by the graph's books: 0, or a bug. */
int64_t work_close(struct work *w);

/** Run `req`, whose slices are set, through the chain. It is finished on return, with an answer.
 *  Blocks as the handlers do. Attached threads (weir_thread_attach). */
void work_run(const struct work *w, struct weir_http_request *req);

#endif
