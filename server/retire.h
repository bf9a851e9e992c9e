/* SPDX-License-Identifier: MIT */
/*
 * Retires replaced graphs. A separate thread drains each of them. The drain takes as long as the
 * requests of the graph, but at most `drain: { old }` of the new configuration. A graph hands its
 * connections over to the graph that replaced it, so it must be freed before that one. A graph with
 * handlers that do not return is freed when they have returned; the graphs after it wait until
 * then.
 *
 * | call                                     | threads        |
 * |------------------------------------------|----------------|
 * | retirees_init, retirees_fini, retire_end | main           |
 * | retire_new, retire_none, retire_begin    | the reloader's |
 * | retire_count, retire_too_many            | any            |
 */
#ifndef WEIR_SERVER_RETIRE_H
#define WEIR_SERVER_RETIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

#include "otlp.h"

/** Further reloads are refused while this number of replaced graphs may still have requests. 8 is a
 *  guess: each graph has its own threads. */
#define RETIRE_BUSY_MAX 8
/** Further reloads are refused while this number of drained graphs has not been freed. A graph that
 *  has been drained may have to wait for an earlier one; meanwhile it takes I/O threads and about 2
 *  MiB. */
#define RETIRE_WAITING_MAX 32

/** Events that were lost in replaced graphs. */
struct retire_losses {
	/* events that ended unfinished, and events in handlers that did not return */
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
	int n;           /* graphs that have not been freed */
	int n_busy;      /* graphs among them that may still have requests */
	int n_left;      /* graphs among them with threads that have not returned */
	uint64_t closed; /* events that ended unfinished */
};

void retirees_init(struct retirees *all);
void retirees_fini(struct retirees *all);

/** Create the thread that will retire the running graph. Call this before the new graph starts, so
 *  that the reload can fail before anything has changed. Returns NULL if memory or threads are
 *  short. Otherwise, either retire_none or retire_begin must be called. */
struct retired *retire_new(struct retirees *all);
/** End the thread without retiring a graph. NULL is allowed. */
void retire_none(struct retired *me);
/** Drain and free `graph` and its trace export, which may be NULL. The requests of the graph may
 *  take another `grace_ns`. The caller takes `grace_ns` from the new configuration, since an
 *  operator can no longer change the old one. */
void retire_begin(
    struct retired *me, struct weir_graph *graph, int64_t grace_ns, struct otlp *otlp);

/** Return the number of graphs that have not ended. While one of them waits for handlers that do
 *  not return, only graphs that may still have requests are counted. */
int retire_count(struct retirees *all);
/** Return whether RETIRE_BUSY_MAX or RETIRE_WAITING_MAX is reached. */
bool retire_too_many(struct retirees *all);

/** End all replaced graphs now, and store the losses in *losses. If losses->left is not 0, threads
 *  of this module are still waiting for handlers: `all` must not be freed, and the process must
 *  exit. */
void retire_end(struct retirees *all, struct retire_losses *losses);

#endif
