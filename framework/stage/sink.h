/* SPDX-License-Identifier: MIT */
/*
 * Sinks: the entry of a stage. A sink checks deadlines, runs admission, and then queues the events
 * or, at an inline stage, runs them immediately.
 *
 * sink_offer() handles a batch of offered events. It refuses those past their deadline, consults
 * the admission policy about each class, enforces the queue's limit, and pushes the remaining
 * events in one critical section, followed by at most one wake-up. Refused events remain the
 * caller's.
 *
 * | call           | may overlap with                                              |
 * |----------------|---------------------------------------------------------------|
 * | sink_offer     | anything; the caller passes its own counters (book)           |
 * | sink_set_*     | anything                                                      |
 */
#ifndef WEIR_STAGE_SINK_H
#define WEIR_STAGE_SINK_H

#include <weir/stage.h>

#include "admission/admission.h"
#include "event/cell.h"
#include "event/field.h"
#include "event/local.h"
#include "event/queue.h"

/** Largest number of partitions of a stage. The limit is 64 because the partitions to wake are
 *  passed as a bit mask. */
#define PARTITIONS_MAX 64

/** Largest number of fronts in a graph: stages whose policy is also consulted upstream. The
 *  policies of other stages are consulted only at their own entry. */
#define FRONTS_MAX 16

/** Value of `before` in struct ahead that stands for the whole pipeline. */
#define AHEAD_ALL 1024

/** Value of sink.expires_ns while a thread runs sink.expire, which then sets the next time. */
#define EXPIRES_UNKNOWN (INT64_MAX - 1)

/** Value of `rank` that stands for all threads of the pool. */
#define ANY_RANK (-1)

/** Admission upstream: the fronts that this sink consults before it admits events, and the
 *  estimates needed to consult them. Written by the control thread, read by any offering thread.
 *  Bit f of a mask stands for front f of the graph. */
struct ahead {
	/* fronts to consult about events of the class that enter here */
	_Atomic uint16_t fronts[WEIR_CLASSES_MAX];
	/* fronts that have already been consulted about the events that this stage sends */
	_Atomic uint16_t judged[WEIR_CLASSES_MAX];
	/* mean time from an event's entry here to its entry at front f */
	_Atomic int64_t lead_ns[WEIR_CLASSES_MAX][FRONTS_MAX];
	/* the share of the events on their way to front f that will arrive before an event entering
	 * here now, 0..AHEAD_ALL */
	_Atomic uint16_t before[WEIR_CLASSES_MAX][FRONTS_MAX];
	/* number of events that enter front f for each one that enters here, at least 1: those that
	 * split into children have more (route_visits); 0 is 1, too */
	_Atomic float fan[WEIR_CLASSES_MAX][FRONTS_MAX];
	/* mean time from the end of an event's service here to the end of the event */
	_Atomic int64_t rest_ns[WEIR_CLASSES_MAX];
};

/** Totals of a policy's decisions on one class. Guarded by the queue's lock. */
struct decided {
	/* events submitted to the policy, here or upstream; excludes events past their deadline */
	uint64_t offered;
	uint64_t wanted; /* events submitted here that no earlier policy had refused */
	/* events that the policy refused or, in shadow mode, would have refused */
	uint64_t refused;
};

/** Source of the key of an event. */
struct key_source {
	enum { KEY_NONE, KEY_EVENT, KEY_CLASS, KEY_STAGE, KEY_FIELD } kind;
	struct field_ref field;
};

/** Source of the expected work of an event, for queues with `discipline: shortest`. */
struct cost_source {
	enum { COST_NONE, COST_FIELD, COST_TYPE } kind; /* COST_TYPE: weir_event_type.cost */
	struct field_ref field;
};

/** How a stage uses the threads of its group (graph/share.c); 0 if unknown. Written by the control
 *  thread. */
struct rotation {
	_Atomic double used;     /* mean number of threads */
	_Atomic double batch_ns; /* mean time of a batch */
	_Atomic double event_ns; /* mean thread time of an event */
	/* mean wait of an event that finds the queue empty and no thread idle */
	_Atomic double first_ns;
};

/** kept: the stage is replicated, so its cells are not dealt either. */
enum sink_local { LOCAL_AUTO, LOCAL_ALWAYS, LOCAL_NEVER, LOCAL_KEPT };

struct sink {
	/* Each batch reads the members up to `name`, which fill the first cache line and a half: a
	 * handler may have displaced them from the cache since the last batch. */
	WEIR_ALIGNED struct weir_stage *stage;
	const struct admission_policy *policy;
	/* owned by the graph; `fronts`, `sinks` and `ahead` are NULL if the graph has no admission
	 * upstream */
	struct ahead *ahead;
	void *pool; /* pool of threads that serve the queue; NULL if the stage has no queue */
	/** Move events of `o`, which leads to this sink, to the cell of the calling thread's core.
	 *  Returns whether it has moved any; if not, they must be offered. NULL if the stage has no
	 *  cells. */
	bool (*splice)(struct thread *t, struct outbox *o);
	uint16_t id;
	uint8_t place;         /* number of the stage in its pool */
	_Atomic uint8_t local; /* enum sink_local: its knob `local` */
	bool inlined;          /* the stage has no queue; its handler runs in the offering thread */
	/* an inline stage with a width: the handler runs in the offering thread while the width is
	 * not reached; other events are queued */
	bool direct;
	bool cohort_by_key;
	bool serial; /* events of one key never overlap (sched/serial.h) */
	/* live knobs */
	_Atomic int64_t linger_ns;
	atomic_int cohort_max;
	/* number of distinct class priorities, at least 1 */
	int n_ranks;
	/* events with less time to their deadline are dropped before the handler */
	_Atomic int64_t least_left_ns;
	/* events that have waited longer are dropped before the handler */
	_Atomic int64_t most_wait_ns;
	/** Run the handler on a batch in the calling thread, and update counters and times. */
	void (*run)(struct sink *sink, struct weir_event **ev, int n);
	const char *name; /* name of the stage, for probes; NULL in tests of bare sinks */
	/* The members up to `sinks` are constant after the build, except expires_ns. */
	/* rank of each class by priority, 0 is the highest (admission/room.h) */
	uint8_t rank[WEIR_CLASSES_MAX];
	struct key_source key;
	struct cost_source cost; /* COST_NONE unless the queue is `shortest` */
	uint64_t (*stage_key)(struct weir_stage *st, const struct weir_event *ev);
	/** Wake threads after events have been queued and the queue length has grown from `before`
	 *  to `length`. `parts` has a bit for each partition that received events; it is ignored if
	 *  the queue has only one partition. */
	void (*wake)(struct sink *sink, uint32_t before, uint32_t length, uint64_t parts);
	/** Set view->threads and view->idle: how many threads serve the queue now, and how many of
	 *  them are idle. For a partitioned stage, only thread `rank` counts, unless `rank` is
	 *  ANY_RANK. */
	void (*look)(const struct sink *sink, int rank, struct admission_view *view);
	/** Return view->work_ns, the work of this stage, plus the work of other stages of its group
	 *  that is done before a new event. The sum divided by view->threads, which `look` has set,
	 *  is the predicted wait. NULL if the stage is in no group. */
	int64_t (*beside)(const struct sink *sink, const struct admission_view *view);
	/** Give the events whose hold has expired back to the stage (graph/tickets.c). Called at
	 *  expires_ns or later. NULL if the stage holds no events. */
	void (*expire)(struct sink *sink, int64_t now_ns);
	/* when the next hold expires, INT64_MAX if none does; EXPIRES_UNKNOWN while `expire`
	 * runs */
	_Atomic int64_t expires_ns;
	/** Return the number of threads over which the partitions are distributed, at least 1. If
	 *  `ranks` is NULL, the number is 1. */
	int (*ranks)(const struct sink *sink);
	/** Put ev[0..n), which have been admitted (thread.celled), into that cell. */
	void (*put)(struct thread *t, struct sink *s, struct weir_event **ev, int n);
	/** Let the calling thread keep all requeued events of `o`: in the cell of its core, if the stage is
	 *  replicated, or as its next batch (sched/again.c). Returns whether it does; if not, they must be
	 *  queued. May be NULL. */
	bool (*requeue)(struct thread *t, struct outbox *o);
	/* The cells of the stage, one for each core of its group: that of core k is
	 * cells[k * cells_apart]. NULL and 0 if the stage has none. */
	struct cell *cells;
	int n_cells, cells_apart;
	int64_t slo_ns;
	int64_t started_ns;   /* start time of the graph */
	int front;            /* number of this front in the graph; -1 if the sink is not a front */
	struct sink **fronts; /* the graph's fronts, by number; FRONTS_MAX entries */
	struct sink **sinks;  /* the graph's sinks, by stage id */
	/* mean service times, by class and of all events; 0 if unknown or if the policy does not
	 * learn (policy->tick); written by the control thread and sink_first_cost */
	_Atomic int64_t cost_ns[WEIR_CLASSES_MAX];
	_Atomic int64_t mean_cost_ns;
	/** Number of threads that this stage may count on if it shares its pool with other stages;
	 *  0 if it has the pool to itself. Written by the control thread. */
	_Atomic double share;
	struct rotation rotation;
	/** For a stage with a width: the share of a service that is spent in the handler, 0 while
	 *  it is unknown. Written by the control thread. */
	_Atomic double handler_share;
	atomic_uint nonsense; /* invalid results from the policy */
	atomic_int mode_cap;  /* enum weir_admission_mode: upper bound of the policy's mode */
	/* predicted wait of a new event, from the last tick; 0 if the policy does not learn */
	_Atomic int64_t wait_ns;
	/* how full the queue was at the last tick (room_full in admission/room.h); may exceed 1
	 * after the limit was lowered */
	_Atomic double full;
	/* Service time of events that were admitted upstream and have not arrived yet. Approximate:
	 * a negative value means none. */
	_Atomic int64_t pipeline_ns;
	/* Change number: incremented after a sink upstream has changed `decided` or one of the next
	 * three members. */
	_Atomic uint64_t stirred;
	/* like decided.wanted, but counted upstream */
	_Atomic uint64_t wanted_ahead[WEIR_CLASSES_MAX];
	/* events that would have been refused upstream if shadow mode were enforced */
	_Atomic uint64_t shadow_ahead[WEIR_CLASSES_MAX];
	/* events refused upstream on behalf of this stage */
	_Atomic uint64_t refused_ahead[WEIR_CLASSES_MAX];
	/* the members up to admission_state are guarded by queue.lock */
	struct weir_admission_spec admission;
	struct decided decided[WEIR_CLASSES_MAX];
	/* demand of each user, owned; NULL until `fair_wanted` is set */
	struct fair *fair;
	/* an event with a user has arrived while all threads were busy; the next tick allocates
	 * `fair` */
	bool fair_wanted;
	_Alignas(16) unsigned char admission_state[ADMISSION_STATE_MAX];
	/* events in handle calls; in its own cache line, since all handler threads write it */
	WEIR_ALIGNED atomic_uint running;
	struct queue queue;
};

/**
 * Offer ev[0..n), 1 <= n <= WEIR_BATCH_MAX, sent by stage `from` (an id, or WEIR_NO_STAGE), at time
 * `now_ns`. `book` is the calling thread's book for this stage. Returns the number of admitted
 * events. Refused events are moved to ev[0 .. n - admitted), in order, with reason[i] set; their
 * `state` and `stage` are the same as before the call.
 *
 * If thread.celled is not 0 then, the caller puts the admitted events into the cell of its core (put).
 *
 * At an inline stage the caller then runs the admitted events with sink->run(sink, ev + refused,
 * admitted), and at one with a width (`direct`) the last thread.to_run of them. It must update its
 * own counters first, because a handler may end the thread.
 */
int sink_offer(struct sink *s, struct weir_event **ev, int n, int from, int64_t now_ns,
    struct book *book, int *reason);

/** Requeue ev[0..n), 1 <= n <= WEIR_BATCH_MAX, at `now_ns`, bypassing admission (weir_requeue). The
 *  events were in a handler of the stage or held by it. Returns the number k of requeued events,
 *  which are ev[0..k). If the queue is closed or memory is short, k is less than n, and *why is the
 *  reason (WEIR_ECLOSED or WEIR_ENOMEM). At an inline stage the caller runs ev[0..k). */
int sink_take_back(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, int *why);

/** Note the expected work of an event that is about to be queued, for a queue that is `shortest`
 *  (stage/cost.c). No lock is held. */
void sink_note_cost(const struct sink *s, struct weir_event *ev);
/** The key of an event that enters the stage. */
uint64_t sink_key(const struct sink *s, const struct weir_event *ev);

/** Let the policy shed some of ev[0..n), which have been taken from the queue and are about to be
 *  handled at `now_ns`. Moves the shed events to the front, in order, and returns their number,
 *  which is 0 for policies without `drop`. Any thread of the pool. */
int sink_drop(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct book *book);

/** Whether the policy's state would stay the same if ticks without events followed. Called by the
 *  control thread. */
bool sink_rested(struct sink *s);

/** Pass `sample`, which describes the time since the last tick, to the policy. Called by the
 *  control thread. */
void sink_tick(struct sink *s, const struct admission_sample *sample);

/** Write the policy's explanation of its current state to buf[size]; "" if it has none. `names`
 *  holds the names of all classes, in order, and a NULL after the last. Any thread. */
void sink_explain(struct sink *s, const char *const *names, char *buf, size_t size);

static inline enum sink_local sink_local(const struct sink *s)
{
	return (enum sink_local)atomic_load_explicit(&s->local, memory_order_relaxed);
}

/** Number of events in the cells of the stage. Approximate while they move. Any thread. */
static inline uint32_t sink_in_cells(const struct sink *s)
{
	uint32_t n = 0;

	for (int k = 0; k < s->n_cells; k++)
		n += cell_length(&s->cells[k * s->cells_apart]);
	return n;
}

/** Number of events that wait, in the queue and in cells. Any thread. */
static inline uint32_t sink_waiting(const struct sink *s)
{
	return queue_length(&s->queue) + sink_in_cells(s);
}

/** Mean service time of an event, 0 if unknown. */
static inline int64_t sink_mean_cost_ns(const struct sink *s)
{
	return atomic_load_explicit(&s->mean_cost_ns, memory_order_relaxed);
}

/**
 * Set the mean service time to `cost_ns`, measured in the first batch, until the meter has a better
 * value. Otherwise a flood on a cold server would fill the queue until the next tick, because every
 * event is admitted while the cost is unknown. Any thread of the pool; if several threads call this
 * concurrently, any of their values will do.
 */
void sink_first_cost(struct sink *s, int64_t cost_ns);

/** Mean service time of an event of the class, 0 if unknown. */
static inline int64_t sink_cost_ns(const struct sink *s, int class_id)
{
	return atomic_load_explicit(&s->cost_ns[class_id], memory_order_relaxed);
}

/** The effective admission mode: the configured mode, limited by the graph's. */
static inline int sink_mode(const struct sink *s) WEIR_REQUIRES(&s->queue.lock)
{
	int cap = atomic_load_explicit(&s->mode_cap, memory_order_relaxed);

	return s->admission.mode < cap ? s->admission.mode : cap;
}

/** Estimated time to serve the events that are queued, or that were dequeued but still wait for
 *  service. The caller holds the lock. */
int64_t sink_work_ns_locked(const struct sink *s) WEIR_REQUIRES(&s->queue.lock);

/** Change the parameters of the admission policy, but not the policy itself, and reset its
 *  state. */
void sink_set_admission(struct sink *s, const struct weir_admission_spec *spec, int64_t now_ns);

#endif
