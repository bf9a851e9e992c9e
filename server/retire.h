/* SPDX-License-Identifier: MIT */
/*
 * Replaced graphs. Each is drained by its own thread, for as long as its requests take but at most
 * `drain: { old }` of the new configuration. It is freed after the graph replaced before it, which
 * hands its connections over to it. A graph with handlers that do not return is freed once they
 * have, and the graphs after it wait for that.
 *
 * | call                             | threads                  |
 * |----------------------------------|--------------------------|
 * | retirees_init, _fini, retire_end | main                     |
 * | retire_new, _none, _begin        | the reloader's           |
 * | retire_count, _too_many          | any                      |
 */
#ifndef WEIR_CLI_RETIRE_H
#define WEIR_CLI_RETIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

#include "otlp.h"

/** Number of replaced graphs with requests at which further reloads are refused. 8 is a guess: each
 *  graph has its own threads. */
#define RETIRE_BUSY_MAX 8
/** Number of replaced graphs that only wait for an earlier one, whose connections they pass on, at
 *  which further reloads are refused. Each has I/O threads and about 2 MiB. */
#define RETIRE_WAITING_MAX 32

/** Losses of events in replaced graphs. */
struct retire_losses {
	/* `closed` events ended unfinished, and `lost` ones are in handlers that did not return */
	uint64_t closed, lost;
	int left;            /* threads in handlers that did not return */
	char left_text[400]; /* some of them, as in struct weir_drain_report */
};

struct retired;

struct retirees {
	pthread_mutex_t lock;
	pthread_cond_t told;
	/* under the lock */
	struct retired *last;
	int n;           /* graphs not freed yet */
	int n_busy;      /* of these, graphs that may still have requests */
	int n_left;      /* of these, graphs with threads that have not returned */
	uint64_t closed; /* events that ended unfinished */
};

void retirees_init(struct retirees *all);
void retirees_fini(struct retirees *all);

/** Create the thread that will retire the running graph. It is created before the new graph starts,
 *  so that a failure makes the reload fail before anything has changed. Returns NULL if memory or
 *  threads are short; otherwise call retire_none or retire_begin next. */
struct retired *retire_new(struct retirees *all);
/** End the thread if no graph is to be retired after all. NULL is allowed. */
void retire_none(struct retired *me);
/** Drain and free `graph`, whose requests may take `grace_ns` more, and its trace export, which may
 *  be NULL. The grace time comes from the new configuration, since that is the one that can still
 *  be changed. */
void retire_begin(
    struct retired *me, struct weir_graph *graph, int64_t grace_ns, struct otlp *otlp);

/** Number of graphs that have not ended. While one of them waits for handlers that do not return,
 *  only graphs that may still have requests are counted. */
int retire_count(struct retirees *all);
/** Whether one of the limits is reached. */
bool retire_too_many(struct retirees *all);

/** End all replaced graphs now and report the losses. If `left` in *losses is not 0, threads of
 *  this module still wait for handlers; then `all` must stay as it is, and the process must end. */
void retire_end(struct retirees *all, struct retire_losses *losses);

#endif
