/* SPDX-License-Identifier: MIT */
/*
 * What every thread that touches events has: its books, its outboxes, what it is running.
 *
 * A thread of a graph is a handler thread, an I/O thread of a source, or one attached by an
 * embedder. thread_enter() gives it a `struct thread` (reachable as thread_self()), registered in
 * the graph so that readers can sum its books; thread_leave() folds the books into the graph's and
 * frees it.
 *
 * Events that a thread emits, or hands to a mailbox, collect in outboxes that sit on the thread's
 * dirty list; thread_flush() sends each on in one operation and runs inline stages on what arrives
 * for them, until nothing is dirty. The list is first in, first out, so a batch moves through
 * inline stages breadth first: stage by stage, all events of the batch (a wavefront).
 *
 * | call             | who                                                           |
 * |------------------|---------------------------------------------------------------|
 * | thread_enter     | the thread itself, once                                       |
 * | thread_flush     | the thread itself, outside any handler                        |
 * | thread_touch     | the thread itself: sets the batch time, cheap                 |
 */
#ifndef WEIR_FLOW_THREAD_H
#define WEIR_FLOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

struct thread;

/** Enter as a thread of `graph`. `home` is the source stage that an I/O thread runs, whose
 *  callbacks will use weir_conf, weir_emit ... for it; NULL for others. 0 or WEIR_ENOMEM. */
int thread_enter(struct weir_graph *graph, const char *name, struct weir_stage *home);

struct pool;

/** The same for a handler thread of `pool` (sched/): it will run the pool's stages. */
int thread_enter_pool(struct weir_graph *graph, const char *name, struct pool *pool);

/** Make a struct now for a thread that will enter when there may be no memory (the drain). 0 or
 *  WEIR_ENOMEM; thread_spare_free unless it was entered. */
int thread_spare_new(struct weir_graph *graph, const char *name, struct thread **spare);
void thread_spare_free(struct thread *spare);
/** Enter as `spare`; on failure (a stage's thread_init) it stays the caller's. */
int thread_enter_spare(struct thread *spare);

/** Leave: everything must have been flushed. */
void thread_leave(void);

/** The thread is dying inside a handler: finish the batch under way as WEIR_EDIED. Returns how many
 *  events that were. */
int thread_abandon(void);

/** Tell this thread the present time (CLOCK_MONOTONIC ns): what weir_now_ns returns. */
void thread_touch(int64_t now_ns);

/** Send on all outboxes, running inline stages. Returns true when anything was sent. */
bool thread_flush(void);

#endif
