/* SPDX-License-Identifier: MIT */
/*
 * A pool is the set of handler threads that serve one stage or the stages of a group.
 *
 * A pool has slots; slot i holds the thread of rank i. Each rank below the target should have a
 * live thread, and no other rank should. A surplus thread exits after its current batch. Missing
 * threads are created when the target is raised. If that fails (the system cannot create a thread,
 * or a stage's thread_init refuses it), pool_repair retries later, with back-off. Queues outlive
 * threads, so no queued event is lost when a thread exits.
 *
 *   slot:  EMPTY --start--> STARTING --begun--> LIVE --exit--> GONE
 *          STARTING --a stage refuses it, or no memory--> GONE
 *          GONE --joined by pool_repair or pool_join--> EMPTY
 *
 * Idle threads spin for an adaptive time, then each parks on its own futex. Parked threads are on a
 * LIFO list: the most recently parked thread has the warmest cache, and rarely needed threads stay
 * asleep; spares (spare.h) are at the end. The waker takes the sleeper off the list, so each list entry causes one wake-up. While a
 * thread spins, no thread is woken.
 *
 * | call                                     | threads                                          |
 * |------------------------------------------|--------------------------------------------------|
 * | pool_wake, pool_wake_parts               | any thread, no queue lock held                   |
 * | pool_set_target, pool_set_bounds         | any thread                                       |
 * | pool_read*, pool_serves, pool_refused    | any thread                                       |
 * | pool_deal, pool_seats, pool_seat_idle    | any thread                                       |
 * | pool_repair, pool_sched                  | the control thread; pool_repair may join threads |
 * | pool_new, pool_add, pool_free            | main thread                                      |
 * | pool_start, pool_started                 | main thread                                      |
 * | pool_close, pool_join                    | main thread                                      |
 */
#ifndef WEIR_SCHED_POOL_H
#define WEIR_SCHED_POOL_H

#include <weir/graph.h>
#include <weir/spec.h>

#include "base/lock.h"
#include "base/schedstat.h"
#include "base/task.h"
#include "stage/sink.h"
#include "stage/thread.h"
#include "sched/policy.h"

/** Maximum number of threads in a pool; the upper limit of threads.max. */
#define POOL_THREADS_MAX 1024

/** Seat number of a thread that is not serving (pool_deal.c); larger than every real seat. */
#define NO_SEAT POOL_THREADS_MAX

enum handler_slot {
	HANDLER_EMPTY,
	HANDLER_STARTING,
	HANDLER_LIVE,
	HANDLER_GONE,
	HANDLER_APART /* of a loop: the thread serves only that (host.h) */
};

/** Why a thread could not start. */
struct pool_refusal {
	const struct weir_stage
	    *by;  /* stage whose thread_init failed; NULL if out of memory or threads */
	int code; /* WEIR_E..., or 0 if there was no failure */
};

struct core;
struct core_group;

struct handler {
	struct pool *pool;
	int rank;
	struct core *core; /* that of a core group which the thread is; NULL in other pools */
	/* the thread belongs to an event loop (host.h), which joins it; constant once the thread
	 * has begun */
	bool hosted;
	atomic_bool spare; /* wanted, though its rank is above the target (spare.h) */
	int wake_fd;       /* eventfd that wakes the thread; -1: `wake` does */
	struct task task;
	atomic_int slot;        /* enum handler_slot */
	atomic_int seat;        /* number among the serving threads; written under pool->lock */
	_Atomic uint8_t state;  /* enum weir_thread_state; valid while the thread lives */
	struct schedstat sched; /* read by the control thread */
	/* the idle list; guarded by pool->lock */
	struct handler *next_idle;
	bool listed;
	atomic_uint wake; /* futex word: 1 when woken */
	/* used only by the thread itself */
	int64_t spin_ns;         /* duration of the next spin */
	int naps;                /* number of 200 ns pauses after a small batch */
	int64_t *ready_ns;       /* per sink: when a lingering batch is due */
	unsigned lingers;        /* value of the pool's, for which ready_ns holds */
	struct sched_view *view; /* per sink */
	_Alignas(16) unsigned char policy_state[SCHED_STATE_MAX];
	struct pool_refusal refusal; /* set before GONE if the thread could not start */
	struct sink *sink;           /* sink of the current batch */
	int part, n_batch;
	bool expired; /* the batch was held until its deadline */
	/* Requeued events that are the next batch, of the sink `next` (again.c); there may be some only
	 * while `passing` is set: the thread sends what a batch has emitted. */
	bool passing;
	int n_next;
	struct sink *next;
	struct weir_event *batch[WEIR_BATCH_MAX];
};

/** When a thread may be created again after a failure. */
struct backoff {
	int64_t retry_ns;
	int64_t ns; /* the next back-off */
};

struct pool {
	const char *name; /* name of the stage or group */
	/* The body of the threads, and whether a thread may have work. */
	void *(*main)(void *handler);
	bool (*due)(struct handler *h);
	int copies; /* of a core group: core k belongs to copy k % copies; 1 in other pools */
	struct core_group *cores; /* NULL unless each thread is a core of a group (cores.h) */
	const struct weir_threads_spec *spec;
	struct weir_graph *graph;
	const struct sched_policy *policy;
	int n_sinks;
	struct sink **sinks;
	int *depths;
	bool pinned;
	int64_t spin_max_ns;
	atomic_uint lingers; /* incremented when the linger time of a sink has changed */
	WEIR_ALIGNED struct lock lock;
	struct handler *idle WEIR_GUARDED_BY(lock);
	/* written under lock; handlers are kept until pool_free */
	_Atomic(struct handler *) handler[POOL_THREADS_MAX];
	atomic_int n_slots; /* number of slots used so far; handler[n_slots..] are NULL */
	/* Number of serving threads, and the first PARTITIONS_MAX of these threads by seat. Written
	 * under lock; entries from n_seats on are stale. */
	atomic_int n_seats;
	_Atomic(struct handler *) seated[PARTITIONS_MAX];
	struct backoff backoff, spare_backoff; /* guarded by lock; of spares (spare.h) */
	WEIR_ALIGNED atomic_int n_idle, n_spinning;
	_Atomic uint64_t spun_ns; /* time that threads have polled (rest.c) */
	atomic_int target, min, max;
	atomic_bool stopping;
	/* threads are created only once the loops that host some of them have been started */
	atomic_bool waits;
	bool started WEIR_GUARDED_BY(lock); /* before pool_start, no thread is created */
	atomic_uint begun; /* futex word, incremented when a thread has begun or failed */
	_Atomic uint64_t failures;
	struct thread_deaths deaths;
	/* why a thread, not a spare, last could not start; cleared when a thread starts */
	struct pool_refusal refusal WEIR_GUARDED_BY(lock);
	/* sum over joined threads; used only by the control thread */
	struct schedstat_sample sched_gone;
};

/** What pool_repair did, for the journal. */
struct pool_repairs {
	int joined, spawned, failed;
	struct pool_refusal refusal; /* why one of the failed threads could not start */
};

/** Compute the bounds of a pool with `spec` on a machine with `cores` cores: 1 <= *min <= *max <=
 *  POOL_THREADS_MAX. If only one of min and max is auto, it adapts to the other. A numeric min
 *  above a numeric max has already been rejected by the check of the spec. */
void pool_bounds(const struct weir_threads_spec *spec, int cores, int *min, int *max);

/** Create a pool for `graph` with the bounds of `spec`. `name` and `spec` must outlive the pool.
 *  Returns 0 or WEIR_ENOMEM. */
int pool_new(struct weir_graph *graph, const char *name, const struct weir_threads_spec *spec,
    const struct sched_policy *policy, struct pool **pool);
/** Let the pool serve `sink`, whose stage has depth `depth`. Must be called before pool_start.
 *  Returns 0 or WEIR_ENOMEM. */
int pool_add(struct pool *pool, struct sink *sink, int depth);
/** Create the threads below the target, except those of event loops; pool_repair retries those that
 *  could not be created. Returns how many were created. */
int pool_start(struct pool *pool);
/** Wait until each thread created by pool_start has started or failed. If a stage refused a thread,
 *  *refusal describes why; otherwise its `by` is NULL. */
void pool_started(struct pool *pool, struct pool_refusal *refusal);
/** Make all threads exit after their current batches, and create no more threads. */
void pool_close(struct pool *pool);
/** Join the threads that exit before `at_ns` (CLOCK_MONOTONIC). Returns how many are still running.
 *  Must be called after pool_close, when the control thread has stopped. */
int pool_join(struct pool *pool, int64_t at_ns);
void pool_free(struct pool *pool);

/** Set the target to `n`, clamped to the bounds, and create missing threads now. Returns the target
 *  in effect. */
int pool_set_target(struct pool *pool, int n);
/** Change the bounds, 1 <= min <= max <= POOL_THREADS_MAX, and clamp the target to them. */
void pool_set_bounds(struct pool *pool, int min, int max);

/** Wake one parked thread for new work, unless a thread is spinning. Returns whether one was
 *  woken. */
bool pool_wake(struct pool *pool);
/** Wake threads for new work in the partitions `parts` (a bit set) of a sink: for each partition,
 *  the thread of the seat that serves it, if that thread is parked. In a group with copies, each
 *  copy has a partition, and one of its parked threads is woken. Returns how many were woken. */
int pool_wake_parts(struct pool *pool, uint64_t parts);

/** Wake the threads whose ranks are in the bit set `ranks`, if they are parked. Returns how many were
 *  woken. */
int pool_wake_ranks(struct pool *pool, uint64_t ranks);

/** Join threads that have exited, and create missing ones if the back-off allows. Control
 *  thread. */
struct pool_repairs pool_repair(struct pool *pool, int64_t now_ns);

/** Count the live threads by state. Returns their number. */
int pool_read(const struct pool *pool, int states[WEIR_THREAD_STATES]);
/** Likewise, without spares (spare.h). */
int pool_read_own(const struct pool *pool, int states[WEIR_THREAD_STATES]);

/** Renumber the serving threads (after one has started or exited), and wake parked threads, so that
 *  they check their new partitions. Any thread. */
void pool_deal(struct pool *pool);
void pool_deal_locked(struct pool *pool) WEIR_REQUIRES(&pool->lock);
/** Return the number of serving threads, or the target if no thread serves. At least 1. Any
 *  thread. */
static inline int pool_seats(const struct pool *pool)
{
	int n = atomic_load_explicit(&pool->n_seats, memory_order_relaxed);

	if (WEIR_UNLIKELY(n == 0)) /* no thread serves yet, so return the target */
		n = atomic_load_explicit(&pool->target, memory_order_relaxed);
	return n > 0 ? n : 1;
}
/** Whether the thread of `rank` is parked or spinning. Approximate, like pool_seat_idle. Any thread. */
bool pool_rank_idle(const struct pool *pool, int rank);
/** Whether the thread of `seat`, which must be below PARTITIONS_MAX, is parked or spinning.
 *  Approximate, since the thread may be waking up. Any thread. */
bool pool_seat_idle(const struct pool *pool, int seat);

/** Rounds before the first event of a queue is taken: half a round on average. */
#define TURN_FIRST 0.5

/** Predict the wait of an event at `sink`. `work_ns` is the work of its stage that is ahead of the
 *  event. The threads do this work in `rounds` visits, between which they visit the other stages of
 *  the pool. Any thread. */
double pool_turn_ns(const struct sink *sink, double work_ns, double rounds);

/** Whether the pool has a live thread. */
bool pool_serves(const struct pool *pool);
/** Return the reason for the most recent failure to start a thread. Its code is 0 if a thread has
 *  started since then. */
struct pool_refusal pool_refused(struct pool *pool);

/** Sum up the CPU and run-queue times of all threads that the pool has had. Returns whether
 *  run-queue time is known. Control thread; the call costs 0.7 to 3 us per thread. */
bool pool_sched(struct pool *pool, struct schedstat_sample *sum);

/** The linger time of a sink has changed: let all threads compute anew when its batch is due. Any
 *  thread. */
void pool_linger(struct pool *pool);

/** Wake every parked thread, so that it checks its seat and the target again. */
void pool_wake_all(struct pool *pool);
/** Wake the loops whose threads serve the pool no longer (host.h): they may be wanted again. They are
 *  on no list, since no work may be sent to them. */
void pool_wake_apart(struct pool *pool);

/** Create the thread of `rank`, a spare (spare.h), or let it go on. Does nothing if the pool is closed or
 *  waits, or a thread could not be created lately. Control thread. */
void pool_start_spare(struct pool *pool, int rank, int64_t now_ns);
/** Make that thread exit after its batch. */
void pool_stop_spare(struct pool *pool, int rank);

/** Report that the thread of `h` has started, or could not start. Called by that thread. */
void pool_begun(struct handler *h);
void pool_not_begun(struct handler *h, struct pool_refusal refusal);

/** The thread of `h`, which belongs to a loop, serves the pool no longer. Called by that thread. */
void pool_apart(struct handler *h);

/** Return the handler of `rank`, which is created if need be; NULL if out of memory. */
struct handler *pool_handler_locked(struct pool *pool, int rank) WEIR_REQUIRES(&pool->lock);
/** Set the slot of `h` to HANDLER_STARTING. The caller holds pool->lock. */
void pool_prepare_locked(struct handler *h);

/** Body of a handler thread of a pool; `arg` is its struct handler. */
void *handler_main(void *arg);
/** Whether a batch of one of the stages of its pool may be ready for `h`. */
bool handler_due(struct handler *h);

#endif
