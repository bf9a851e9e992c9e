/* SPDX-License-Identifier: MIT */
/*
 * Pools: the handler threads that serve one stage, or the stages of a group.
 *
 * A pool has slots; slot i holds the thread of rank i. Ranks below the target should have a live
 * thread, the others should not. Threads leave by themselves at the end of a batch; missing ones
 * are made by whoever raises the target and, after a failure, by pool_repair with back-off. Nothing
 * queued depends on a thread: queues outlive them.
 *
 *   slot:  EMPTY --start--> LIVE --leave or die--> GONE --joined by pool_repair / pool_stop-->
 * EMPTY
 *
 * Idle threads: spin for an adaptive while, then park on a futex of their own, on a LIFO list (the
 * most recently parked has the warmest cache and lets surplus threads stay cold). The waker takes
 * the sleeper off the list, so an announcement is used once; a spinning thread saves the wake-up.
 *
 * | call                              | who                                                  |
 * |-----------------------------------|------------------------------------------------------|
 * | pool_wake, pool_wake_parts        | any thread, no queue lock held                       |
 * | pool_set_target, pool_set_bounds  | any thread                                           |
 * | pool_repair, pool_sched           | the control thread (joins)                           |
 * | pool_read                         | any thread                                           |
 * | pool_new, add, start, stop, free  | main thread                                          |
 */
#ifndef WEIR_SCHED_POOL_H
#define WEIR_SCHED_POOL_H

#include <weir/graph.h>
#include <weir/spec.h>

#include "base/lock.h"
#include "base/schedstat.h"
#include "base/task.h"
#include "flow/sink.h"
#include "sched/policy.h"

/** Threads a pool may have at most: the range of threads.max. */
#define POOL_THREADS_MAX 1024

enum handler_slot { HANDLER_EMPTY, HANDLER_LIVE, HANDLER_GONE };

struct handler {
	struct pool *pool;
	int rank;
	struct task task;
	atomic_int slot;        /* enum handler_slot */
	_Atomic uint8_t state;  /* enum weir_thread_state, of a live thread */
	struct schedstat sched; /* read by the control thread */
	/* the idle list; guarded by pool->lock */
	struct handler *next_idle;
	bool listed;
	atomic_uint wake; /* futex word: 1 when woken */
	/* the thread's own */
	int64_t spin_ns;         /* how long to spin next time */
	int naps;                /* looks to skip after a small batch */
	int64_t *ready_ns;       /* per sink: when a lingering batch falls due */
	struct sched_view *view; /* per sink */
	_Alignas(16) unsigned char policy_state[SCHED_STATE_MAX];
	struct sink *sink; /* of the batch under way */
	int part, n_batch;
	struct weir_event *batch[WEIR_BATCH_MAX];
};

struct pool {
	char name[64];
	struct weir_graph *graph;
	const struct sched_policy *policy;
	int n_sinks;
	struct sink **sinks;
	int *depths;
	bool pinned;
	int64_t spin_max_ns;
	WEIR_ALIGNED struct lock lock;
	struct handler *idle WEIR_GUARDED_BY(lock);
	_Atomic(struct handler *) handler[POOL_THREADS_MAX]; /* written under lock, kept for good */
	atomic_int n_slots;           /* slots used so far: handler[n_slots..] are NULL */
	int64_t retry_ns, backoff_ns; /* guarded by lock: when to try again to make a thread */
	WEIR_ALIGNED atomic_int n_idle, n_spinning;
	atomic_int target, min, max;
	atomic_bool stopping;
	_Atomic uint64_t failures, deaths;
	struct schedstat_sample sched_gone; /* of threads joined; the control thread's */
};

/** What pool_repair did, for the journal. */
struct pool_repairs {
	int joined, spawned, failed;
};

/** A pool for `graph` with the bounds of `spec`. 0 or WEIR_ENOMEM. */
int pool_new(struct weir_graph *graph, const char *name, const struct weir_threads_spec *spec,
    const struct sched_policy *policy, struct pool **pool);
/** Let the pool serve `sink`, a stage of depth `depth`. Before pool_start. 0 or WEIR_ENOMEM. */
int pool_add(struct pool *pool, struct sink *sink, int depth);
/** Start the first threads; those that could not be made are left to pool_repair. Returns how many
 *  run. */
int pool_start(struct pool *pool);
/** Let all threads end after their present batch and join them. */
void pool_stop(struct pool *pool);
void pool_free(struct pool *pool);

/** Want `n` threads, clamped to the bounds; makes missing ones now. Returns the target in force. */
int pool_set_target(struct pool *pool, int n);
/** Change the bounds, 1 <= min <= max <= POOL_THREADS_MAX, and clamp the target to them. */
void pool_set_bounds(struct pool *pool, int min, int max);

/** Work has come: wake one sleeper unless a thread is spinning. Returns whether one was woken. */
bool pool_wake(struct pool *pool);
/** Work has come for partitions `parts` of a sink: wake the thread of each one's rank if it sleeps.
 *  Returns how many were woken. */
int pool_wake_parts(struct pool *pool, uint64_t parts);

/** Join threads that have gone, make missing ones when the back-off allows. Control thread. */
struct pool_repairs pool_repair(struct pool *pool, int64_t now_ns);

/** Threads by state; returns the number of live ones. */
int pool_read(const struct pool *pool, int states[WEIR_THREAD_STATES]);

/** CPU and run-queue time of the pool's threads since start, those that have gone included. Returns
 *  whether run-queue time is known. Control thread; 0.7 to 3 us per thread. */
bool pool_sched(struct pool *pool, struct schedstat_sample *sum);

/** Let every sleeper look again (bounds or ranks changed). */
void pool_wake_all(struct pool *pool);

/** Body of a handler thread; `arg` is its struct handler. */
void *handler_main(void *arg);

#endif
