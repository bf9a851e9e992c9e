/* SPDX-License-Identifier: MIT */
/*
 * Core groups: pools in which each thread is a core that chooses the stage it visits next.
 *
 * A core group is a pool (pool.h) with another body of its threads (core.c). Each core has a cell
 * (event/cell.h) for each stage of the group: what its thread sends to a stage of its own group
 * waits there, without a lock, until the same thread handles it. All other events, and those that a
 * cell must not have (splice.c), pass through the queue of the stage, from which each core takes its
 * share.
 *
 * The word `arrived` tells the cores which queues to look at: it has a bit for each stage. Its
 * accesses are seq_cst, because the sender of an event and a core that looks for work must not miss
 * each other:
 *   sender:  raise the queue length; set the bit, unless it is seen set; then read n_idle (pool_wake)
 *   core:    clear the bit of an empty queue, then read the length again; if it is not 0, set the
 *            bit and wake a core, which may have parked in between;
 *            before it parks: raise n_idle, then read `arrived`
 *
 * A core's state outlives its thread, but a thread that exits leaves empty cells: it moves their
 * events to the queues, or ends them if the queues are closed.
 *
 * | call                              | threads                                            |
 * |-----------------------------------|----------------------------------------------------|
 * | cores_new, cores_open, cores_free | main thread                                        |
 * | cores_arrived, cores_halt         | any thread                                         |
 * | cores_get, cores_set, cores_peek  | any thread                                         |
 * | core_*                            | the thread of the core                             |
 */
#ifndef WEIR_SCHED_CORES_H
#define WEIR_SCHED_CORES_H

#include "event/cell.h"
#include "sched/blocked.h"
#include "sched/longest.h"
#include "sched/next.h"
#include "sched/now.h"
#include "sched/pool.h"

/** What a core group is made from. */
struct cores_spec {
	const char *name;                        /* must outlive the group */
	const struct weir_threads_spec *threads; /* only `spin` and `policy` are used */
	const struct next_policy *policy;
	int n;    /* number of cores at the start, and the fewest; at least 1 */
	int most; /* the policy of `threads` resizes the group between n and most; 0: n */
	int max;  /* bound of all later changes of these, at least most; 1 to POOL_THREADS_MAX */
	const int
	    *cpu;    /* CPU of each core, `max` entries; NULL: those the process may use, in turn */
	int first;   /* number of the first of these; so that groups do not share CPUs needlessly */
	bool newest; /* events are put in front of a cell */
	bool unbalanced; /* no events are dealt to idle cores */
	int copies;      /* 1, or a divisor of n: core k belongs to copy k % copies */
};

/** What may change while the cores run. Copied by each core when it has changed. */
struct cores_plan {
	const struct next_policy *policy;
	struct next_limits limits;
	struct next_order order;
	bool balance;
	unsigned window; /* number of the present window of struct longest */
};

/** What a core has done at a stage. Written by its thread, read by any. */
struct core_book {
	WEIR_ALIGNED book_counter from_queue; /* events taken */
	book_counter dealt;                   /* sent to the queue, since another core was idle */
	/* visits that ended, or were interrupted, before the stage was empty, by why the next visit
	 * began: NEXT_POLICY if the gate ended them */
	book_counter cut[NEXT_POLICY + 1];
	/* begun, by enum next_why. The first is not used, and the others, with the members up to the
	 * first of `longest`, which each batch changes, fill a cache line. */
	book_counter visits[NEXT_POLICY + 1];
	book_counter batches;
	book_counter
	    busy_ns; /* from the end of the batch before, or from the wake-up, to the end */
	book_counter from_cell; /* events taken */
	struct longest longest;
};

/** What another thread waits for, which the core does between two batches. */
#define ASKED_LOOK 1U /* cores_peek; written under group->lock */
#define ASKED_STOP 2U /* cores_stop */

/** A core. Used by its thread only, except the atomic members, the counters, and the lengths and
 *  times of the cells. */
struct core {
	WEIR_ALIGNED struct core_group *group;
	int number;
	struct cell *cell;  /* by stage */
	uint64_t filled;    /* bit i: cell i has events */
	uint32_t n;         /* events in all cells */
	uint64_t lingering; /* bit i: a batch of stage i may linger (ready_ns of its handler) */
	/* bit i: since this core last had nothing to do, it has woken another one that waits for
	 * that batch in its place */
	uint64_t replaced;
	atomic_uint asked; /* bits ASKED_LOOK and ASKED_STOP */
	/* bit i: cores_stop waits until the core has called ops->stop of stage i */
	_Atomic uint64_t stopping;
	/* bit i: the queue of stage i had events for this core at the last look; seen_ns[i]: since
	 * when, or about when the oldest of them was queued */
	uint64_t seen;
	uint64_t mixed; /* bit i: batches of stage i are not in the order of arrival */
	int64_t seen_ns[NEXT_STAGES_MAX];
	struct next_view sight; /* of the present choice; its stages are `view` */
	struct next_stage view[NEXT_STAGES_MAX];
	struct next_core next;
	struct core_book book[NEXT_STAGES_MAX];
	book_counter moved; /* slots given to other cores (serial.h) */
	int64_t deal_ns;    /* no slot is given before this time */
	atomic_uint window; /* of the books' `longest`; read by any thread */
	unsigned version;   /* of `plan` */
	struct cores_plan plan;
	/* of a spare (spare.h); false and 0 for others */
	bool stands_in;
	uint64_t barred; /* bit i: it may not take events of stage i */
};

/** What the control thread knows of a thread that it watches. Other threads read only `sleep`. */
struct seen {
	struct blocked_sight sight;
	struct blocked blocked;
	const struct weir_stage *stage; /* of the call in `sight` */
	int64_t told_ns;                /* when the journal was last told; 0: never */
	struct now_sleep sleep;
};

/** What the control thread knows of a core. Other threads read only the atomic members. */
struct watched {
	struct seen own, stand_in; /* of the core's thread, and of its spare */
	int64_t counted_ns;        /* beginning of the call that was last counted in `n` */
	struct now now;
	_Atomic uint64_t n; /* times that the core was blocked */
	_Atomic uint64_t
	    at[NEXT_STAGES_MAX];      /* of these, in a handler of stage i; not inline ones */
	_Atomic(struct core *) spare; /* NULL before it was needed; owned */
};

/** What cores_peek asks for: the oldest events of a stage, see cell_peek. */
struct cores_look {
	int place;
	int64_t now_ns;
	struct weir_queued *out;
	int n, max;
};

struct serial;

struct core_group {
	/* constant after cores_open */
	struct pool *pool;
	struct weir_threads_spec threads; /* of the pool */
	int n_stages, max;
	uint64_t expiring; /* bit i: stage i may hold events until their deadline */
	uint64_t kept;     /* bit i: stage i is replicated, so its events stay on their core */
	bool newest;
	int *cpu;                              /* as in cores_spec */
	int first;                             /* likewise */
	struct core *core;                     /* max */
	struct cell *cells;                    /* max * n_stages, and n_stages that stay empty */
	struct watched *watched;               /* max */
	int first_spare;                       /* number of the spare of core 0; at least max */
	struct serial *serial;                 /* NULL without serial stages; owned */
	WEIR_ALIGNED _Atomic uint64_t arrived; /* see file top */
	WEIR_ALIGNED _Atomic uint64_t halted;  /* bit i: stage i is paused */
	atomic_uint version;                   /* incremented when `plan` has changed */
	_Atomic uint64_t closed; /* events that exiting threads have ended as closed */
	struct lock asking;      /* held by the thread that looks into the cells (cores_peek) */
	atomic_uint unanswered;  /* cores that have not answered; a futex */
	/* cells have more events than their share of a limit; see cores_divide. Under graph->lock */
	bool undivided;
	_Atomic int64_t stop_until_ns; /* argument of ops->stop */
	atomic_uint stops;             /* calls of ops->stop that have returned; a futex */
	struct lock lock;
	struct cores_plan plan WEIR_GUARDED_BY(lock);
	struct cores_look look WEIR_GUARDED_BY(lock);
};

/** Read the value of `cores:`, "auto", a number, a range such as "2..8" or a list of CPUs. Returns
 *  the number of cores, of a range the greatest, or -1 if the text is none of these, has a range
 *  whose ends are in the wrong order, or names a CPU twice. Sets *listed to whether the text is a
 *  list, and stores the CPUs of a list in cpu[0..n). */
int cores_parse(const char *text, int cpu[POOL_THREADS_MAX], bool *listed);
/** Read "auto", a number or a range, whose ends may be in the wrong order. Returns the fewest cores,
 *  or -1, and sets *max to the most. */
int cores_range(const char *text, int *max);

/** Create a core group for `graph`, without stages, as a pool. Returns 0 or WEIR_ENOMEM. */
int cores_new(struct weir_graph *graph, const struct cores_spec *spec, struct pool **pool);

/** The stages have been added (pool_add), in the order of the policy: at most NEXT_STAGES_MAX. Those
 *  whose bit is set in `celled` get cells. Returns 0 or WEIR_ENOMEM. */
int cores_open(struct pool *pool, uint64_t celled);
/** NULL is allowed. */
void cores_free(struct core_group *group);

/** Read what cores_set has published. */
void cores_get(struct core_group *group, struct cores_plan *plan);
/** Publish a plan for all cores. Callers that change a part of it hold graph->lock. */
void cores_set(struct core_group *group, const struct cores_plan *plan);

/** Change the bounds of the number of cores, 1 <= min <= max <= group->max. Under graph->lock. */
void cores_bound(struct core_group *group, int min, int max);
/** Divide the limit of each queue between the queue and the cells of the cores that the present
 *  bound allows; with `local: never`, the cells get nothing. Slots that full cells still use are
 *  withheld from the queue, until another call finds the cells within their shares. Under
 *  graph->lock, after a change, and then about every 100 ms while group->undivided. */
void cores_divide(struct core_group *group);

/** Add descriptions of the events in the cells of `sink` to out[0..n), which queue_peek has filled
 *  in as of `now_ns`: the `max` oldest remain, oldest first. Returns their number. Waits until the
 *  cores have answered, at most 20 ms; events of a core that does not answer are left out. */
int cores_peek(struct core_group *group, const struct sink *sink, int64_t now_ns,
    struct weir_queued *out, int n, int max);

/** The queue of `sink` has got events. Called before pool_wake. */
static inline void cores_arrived(struct core_group *group, const struct sink *sink)
{
	uint64_t bit = 1ULL << sink->place;

	if (!(atomic_load(&group->arrived) & bit))
		atomic_fetch_or(&group->arrived, bit);
}

/** Pause or resume the stage of `sink`: its cells wait, like its queue. A caller that resumes wakes
 *  the pool. */
void cores_halt(struct core_group *group, const struct sink *sink, bool paused);

/** Body of a core's thread; `arg` is its struct handler. */
void *core_main(void *arg);
/** Whether a core may have work. */
bool core_due(struct handler *h);

/** The steps of core_main, for threads that are also event loops (host.h): bind the thread to its
 *  CPU; begin; take the next batch, whose size is returned, 0 if there is none; run the batch, and
 *  return the time at its end. */
void core_pin(const struct handler *h);
void core_begin(struct handler *h);
int core_take(struct handler *h, int64_t now_ns);
int64_t core_run(struct handler *h, int64_t taken_ns);

/** The sinks' `splice` and `put` (splice.c). */
bool core_splice(struct thread *t, struct outbox *o);
void core_put(struct thread *t, struct sink *s, struct weir_event **ev, int n);

/** Number of events that the cell may get. None while the queue has more than its own slots: a core
 *  has moved events from a cell to it (give.c), or the limit was lowered. */
static inline uint32_t cores_room(
    const struct core *core, const struct cell *cell, const struct queue *q)
{
	/* acquire: pairs with divide_limit in event/queue_steer.c */
	uint32_t most = atomic_load_explicit(&q->cell_max, memory_order_acquire);
	uint32_t n = cell_length(cell);

	/* a core that leaves keeps no events, and the others have its share of the limit */
	if (core->number >= atomic_load_explicit(&core->group->pool->max, memory_order_relaxed))
		return 0;
	if (n >= most || queue_length(q) > atomic_load_explicit(&q->own, memory_order_relaxed))
		return 0;
	return most - n;
}

/** Answer cores_peek (look.c). */
void core_answer(struct core *core);

/** Follow another policy: it learns of all events in the cells (renew.c). */
void core_renew(struct core *core);
/** Call ops->stop for each replica of `st`, a stage of the group, in the thread of its core. Waits
 *  until they have returned, until `until_ns` at the latest. Replicas of cores without a thread are
 *  left out while the pool may still create one; once it is closed, the calling thread stops them.
 *  The thread of the drain. */
void cores_stop(struct core_group *group, struct weir_stage *st, int64_t until_ns);
/** Do what cores_stop waits for, if it does (replicas.c). */
void core_stop(struct core *core);
/** The sinks' `requeue`, for replicated stages (replicas.c). */
bool core_requeue(struct thread *t, struct outbox *o);

/** Move at most `max` events from cell `i` to the queue of the stage; if that cannot take them, end
 *  them. Returns their number. */
uint32_t core_give(struct core *core, int i, uint32_t max);
/** If another core is idle and this one has more than it can do soon, give it some (give.c). Called
 *  after a batch has been taken. */
void core_deal(struct core *core);
/** The copy to which the core belongs. */
static inline int core_copy(const struct core *core)
{
	return core->number % core->group->pool->copies;
}

/** Whether the queue, which is not empty, has events for the copy to which the core belongs. */
static inline bool core_has_own(const struct core *core, const struct queue *q)
{
	return WEIR_LIKELY(q->copy_cores == 0) || queue_copy_length(q, core_copy(core)) > 0;
}

/** Take over the plan of the group (cores_set), or do so if it has changed. */
void core_take_plan(struct core *core);
static inline void core_refresh(struct core *core)
{
	/* acquire: pairs with cores_set */
	if (WEIR_UNLIKELY(
		atomic_load_explicit(&core->group->version, memory_order_acquire) != core->version))
		core_take_plan(core);
}

/** Whether a core of the same copy is parked. */
bool core_copy_idles(const struct core *core);
/** Whether a core of the group is idle, so that events may be dealt to it. */
static inline bool core_idles(const struct core *core)
{
	const struct pool *pool = core->group->pool;

	return core->plan.balance &&
	       atomic_load_explicit(&pool->n_idle, memory_order_relaxed) +
		       atomic_load_explicit(&pool->n_spinning, memory_order_relaxed) >
		   0 &&
	       (WEIR_LIKELY(pool->copies == 1) || core_copy_idles(core));
}

/** Return the number of events in the cells of stages that are not paused, and in *filled the bits of
 *  these cells. */
static inline uint32_t core_live(const struct core *core, uint64_t *filled)
{
	uint64_t halted = atomic_load_explicit(&core->group->halted, memory_order_relaxed);
	uint32_t n = core->n;

	for (uint64_t left = core->filled & halted; WEIR_UNLIKELY(left != 0); left &= left - 1)
		n -= cell_length(&core->cell[__builtin_ctzll(left)]);
	*filled = core->filled & ~halted;
	return n;
}

/** Number of events in the cells of a core from which on events are dealt while another core is
 *  idle. Fewer are dealt only if they are of several stages: otherwise the wake-up of a core costs
 *  more than they do. A guess, which the simulator uses, too (sim/group_deal.c). */
#define DEAL_EVENTS 4

/** Estimated work behind the present batch from which on it is worth waking another core: a quarter
 *  of a wake-up (measured: 21 us). A guess. */
#define DEAL_NS (5 * NS_PER_US)

/** The thread is exiting: events that it sends from now on go to queues. */
void core_retire(struct handler *h);
/** Called after core_retire: leave empty cells. */
void core_clear(struct handler *h);

#endif
