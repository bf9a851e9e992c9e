/* SPDX-License-Identifier: MIT */
/*
 * The per-thread context of threads that handle events: counters, outboxes, the current batch.
 *
 * A thread of a graph is a handler thread, an I/O thread of a source, or a thread attached by an
 * embedder. thread_enter() allocates a `struct thread` for the calling thread (see thread_self())
 * and registers it with the graph, so that readers can sum its counters. thread_leave() adds the
 * counters to the graph's totals and frees the struct.
 *
 * Events that a thread emits, or sends to a mailbox, are collected in outboxes on the thread's
 * dirty list. thread_flush() sends the events of each outbox in one operation, and runs inline
 * stages on the events sent to them, until the list is empty. The list is first in, first out, so a
 * batch moves through inline stages breadth first: all events of the batch pass one stage before
 * the next.
 *
 * | call             | caller                                                        |
 * |------------------|---------------------------------------------------------------|
 * | thread_enter     | the thread itself, once                                       |
 * | thread_flush     | the thread itself, outside any handler                        |
 * | thread_touch     | the thread itself: sets the batch time, cheap                 |
 */
#ifndef WEIR_STAGE_THREAD_H
#define WEIR_STAGE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

struct thread;
struct sink;

/** Slow path of thread_settle. */
void thread_settle_late(struct sink *s);

/** Inline stages have run in the calling thread outside a batch of its pool: charge their time to no
 *  stage. */
void thread_forget_behind(void);

/** The interface of an I/O thread to other threads. It is part of the thread's loop, which outlives
 *  the thread. */
struct thread_link {
	/** Make the thread run an iteration of its loop. Any thread. */
	void (*wake)(struct thread_link *link);
	/** Set while the thread has been in one handler call for longer than `threads: { stuck }`
	 *  of the handler's stage. Read by any thread. */
	atomic_bool held;
};

/** Counts threads that called pthread_exit inside a callback of a stage. */
struct thread_deaths {
	_Atomic uint64_t n;
	_Atomic(const struct weir_stage *) last_in; /* NULL if the last one was not in a handler */
};

/**
 * Register the calling thread with `graph`. An I/O thread passes its source as `source`, so that
 * its callbacks may call weir_conf, weir_emit and so on for that source. It passes its interface to
 * other threads as `link`. Other threads pass NULL for both. Returns 0, WEIR_ENOMEM, or the error
 * of a stage's thread_init (see thread_refused_by).
 */
int thread_enter(struct weir_graph *graph, const char *name, struct weir_stage *source,
    struct thread_link *link);

struct pool;
struct local;

/** Likewise, of an I/O thread that is also a handler thread of `pool`, or not if `pool` is NULL. */
int thread_enter_core(struct weir_graph *graph, const char *name, struct weir_stage *source,
    struct thread_link *link, struct pool *pool);

/** Register the calling thread as a handler thread of `pool` (sched/), to run the pool's stages.
 *  Returns the same codes as thread_enter. */
int thread_enter_pool(struct weir_graph *graph, const char *name, struct pool *pool);

/** The stage whose thread_init failed in the calling thread's last attempt to register, or NULL. */
const struct weir_stage *thread_refused_by(void);

/** Allocate the struct of a thread that will register later, when memory may be short (the drain
 *  thread). Returns 0 or WEIR_ENOMEM. Free the struct with thread_spare_free unless the thread has
 *  registered. */
int thread_spare_new(struct weir_graph *graph, const char *name, struct thread **spare);
void thread_spare_free(struct thread *spare);
/** Register the calling thread with the struct `spare`, even if a thread_init fails; thread_prepare
 *  calls a failed thread_init again. */
void thread_enter_spare(struct thread *spare);

/** Detach the calling thread from its graph, if any, until it calls thread_step_in with the
 *  returned value. Meanwhile it may register with another graph. */
struct thread *thread_step_out(void);
void thread_step_in(struct thread *t);

/** Call the thread_init of a stage for which events have arrived, if it has failed in this thread
 *  or has not run yet. Returns whether it succeeded. Called by the thread itself. */
bool thread_prepare(struct local *l);

/** Call thread_fini for each stage of the thread, and send the events that the stages release. The
 *  thread must handle no more events afterwards. Sending may run inline stages. If one of them ends
 *  the thread, call thread_died and then this function once more. */
void thread_end(void);
/** Whether the calling thread, which is exiting, is in a handler or in ops->refused. */
bool thread_in_handler(void);
/** Unregister the calling thread from its graph. Calls thread_end first. */
void thread_leave(void);

/**
 * Clean up after the calling thread, which is exiting inside a handler or ops->refused: count it in
 * `deaths`, finish the batch as WEIR_EDIED, and send the events in the outboxes. Sending may run
 * inline handlers, which may end the thread again. So call this function from a cleanup handler
 * that pushes itself again.
 */
void thread_died(struct thread_deaths *deaths);

/** Return the struct of the calling thread, so that another thread can continue with it
 *  (thread_resume). The struct stays in the graph with its counters. Called by an exiting thread
 *  after thread_died. */
struct thread *thread_pass_on(void);
/** Continue with the struct `t` in a new system thread, even if a thread_init fails (see
 *  thread_enter_spare). */
void thread_resume(struct thread *t);

/** Set this thread's current time (CLOCK_MONOTONIC, ns), as returned by weir_now_ns. */
void thread_touch(int64_t now_ns);

/** Send the events in all outboxes and run inline stages. Returns whether any outbox had events. */
bool thread_flush(void);

#endif
