/* SPDX-License-Identifier: MIT */
/*
 * Locals: the state of one thread at one stage (counters, outboxes, configuration, thread state).
 *
 * Only the thread itself writes its counters. Readers (views) sum the counters of all threads with
 * relaxed loads. When a thread leaves the graph, its counters are added to the stage's common book
 * (struct gone in graph.h).
 *
 * A thread allocates the locals of the stages that it runs when it registers with the graph, and
 * other locals at first use. So readers, which walk the list of a stage's locals (graph.h), visit
 * only counters in use. If a local cannot be allocated, the thread counts in the stage's common
 * book, under the graph's threads_lock.
 *
 *   offered + spawned = completed + shed + failed + departed + in flight
 *   spawned = joined + orphaned + cancelled + in flight in the whole graph
 *
 * The first holds per stage and class, at any moment; the second per stage. Spawned events are those
 * that the stage has made itself (weir/op.h).
 *
 * The offering thread counts `offered` and the events shed at admission, in its own book of the
 * receiving stage. The thread that ends an event counts completions, failures and events shed
 * later.
 */
#ifndef WEIR_EVENT_LOCAL_H
#define WEIR_EVENT_LOCAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <weir/event.h>
#include <weir/spec.h>
#include <weir/stage.h>
#include <weir/view.h>

#include "base/schedstat.h"
#include "event/mailbox.h"
#include "event/payload.h"
#include "event/slab.h"

/** A counter with one writer, which therefore needs no atomic read-modify-write to add. Readers
 *  never see a torn value. */
typedef _Atomic uint64_t book_counter;

static inline void book_add(book_counter *c, uint64_t n)
{
	atomic_store_explicit(
	    c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t book_read(const book_counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

struct class_book {
	book_counter offered, completed; /* with `handled`, what each batch changes */
	/* events whose service time has been recorded; a requeued event is counted once */
	book_counter handled;
	book_counter failed, shadow_shed;
	book_counter refused; /* of the offered events, those that were not admitted */
	/* time that inline stages took in the handler threads of this stage */
	book_counter behind_ns;
	/* `spawned`: events that the stage has made (weir/op.h), which are not offered to it.
	 * `departed`: of these, the ones that another stage has admitted, or that ended before that. */
	book_counter spawned, departed;
	/* events that wait for their children; in two's complement, like `held` */
	book_counter awaiting;
	book_counter shed[WEIR_SHED_REASONS];
};

/** Number of events that have come into the stage; see file top. */
static inline uint64_t book_came(const struct class_book *c)
{
	return book_read(&c->offered) + book_read(&c->spawned);
}

/** Number of events that have left the stage. */
static inline uint64_t book_left(const struct class_book *c)
{
	uint64_t n = book_read(&c->completed) + book_read(&c->failed) + book_read(&c->departed);

	for (int r = 0; r < WEIR_SHED_REASONS; r++)
		n += book_read(&c->shed[r]);
	return n;
}

/** A histogram in use; struct weir_hist is its snapshot. */
struct hist_book {
	book_counter sum_ns; /* beside the lowest bucket, which most short waits are in */
	book_counter count[WEIR_HIST_BUCKETS];
};

struct time_book {
	struct hist_book wait, service;
};

/** Response times of a source, for one class, by enum weir_outcome (weir_answered). */
struct answer_book {
	struct hist_book by[WEIR_OUTCOMES];
};

struct book {
	/* up to batch_events, what each batch changes: one cache line in a local */
	_Atomic int64_t running_since_ns; /* start time of the handle call in progress, or 0 */
	_Atomic int running_n;            /* number of events in that call */
	/* change number: incremented after the other counters have changed (book_changed); the first
	 * of the counters, which are all members up to the last one */
	book_counter changes;
	book_counter running; /* events in handlers or outboxes; a gauge, like `held` */
	/* Events that threads have begun to handle: for the first time, and again after they were
	 * put back (`restarted`); `again_ns` is the sum of the waits of the latter. See
	 * graph/profile.c. */
	book_counter started;
	book_counter busy_ns, batches, batch_events;
	book_counter cohorts[WEIR_COHORT_BUCKETS]; /* of the batches, by number of events */
	book_counter unhandled, wakeups, restarted, again_ns;
	/* `put_back`: events that were to return to the queue (weir_requeue). `dropped`: events that
	 * ended after they were admitted or put back, and before a handler got them. */
	book_counter put_back, dropped;
	book_counter refusals; /* events that the other side has refused (weir_hold_refused) */
	book_counter payload_refused[WEIR_PAYLOAD_REFUSALS]; /* and reservations, by reason */
	/* for services that ended because a ticket expired: their total time, and the number of
	 * events that left the stage after such a service */
	book_counter expired_ns, expired;
	/* Of the events that the stage has made: children that have ended for a parent, others that
	 * have ended, and those of both that have ended as WEIR_ECANCELLED. */
	book_counter joined, orphaned, cancelled;
	book_counter children_refused; /* that a bound refused (weir_child, WEIR_ELIMIT) */
	/* events held minus events released, in two's complement, since a thread may release events
	 * that others hold; only the sum over all threads is meaningful */
	book_counter held;
	book_counter metric[WEIR_METRICS_MAX]; /* in two's complement, since gauges may decrease */
	struct class_book class_book[WEIR_CLASSES_MAX];
};

/**
 * Publish changes of the counters of `b`. Called by the writer, once per batch, after the changes.
 * A reader remembers the last change number that it has seen, and reads the counters again only
 * when the number differs. The number is never reset, so no change is lost:
 *
 *   writer   counters, relaxed -> changes, release
 *   reader   changes, acquire  -> counters
 *
 * A reader that sees the new number also sees the counters written before it. A reader that sees
 * the old number may already see some of the new counters; it reads the counters again as soon as
 * it sees the new number.
 */
static inline void book_changed(struct book *b)
{
	atomic_store_explicit(&b->changes,
	    atomic_load_explicit(&b->changes, memory_order_relaxed) + 1, memory_order_release);
}

/** Identifies the thread in a profile: number `n` of `pool`, or of the loops of `source`. The other
 *  threads, which have neither, are not told apart. */
struct thread_id {
	const struct pool *pool;
	const struct weir_stage *source;
	int n; /* -1: not known yet */
};

struct sink;
struct queue;
struct local;
struct conf;
struct pool;
struct core;
struct slot;

/** Value of `outlet` in the outbox of requeued events, which do not pass through an outlet. */
#define OUTLET_AGAIN (-1)
/** Value of `outlet` in the outbox `take` of a local. This outbox has no events: if it is on the
 *  thread's dirty list, the thread has to take events from the queue of an inline stage with a
 *  width. */
#define OUTLET_TAKE (-2)

/** Outgoing events for one sink or mailbox, collected until the batch ends. The outboxes that the
 *  thread must then send form its dirty list. */
struct outbox {
	struct weir_event *head, **tail;
	int n;
	int outlet : 31;
	bool dirty : 1;                       /* the outbox is on the thread's dirty list */
	struct outbox *next;                  /* link in the dirty list */
	struct sink *sink;                    /* destination; NULL if it is a mailbox */
	struct local *from;                   /* the sender's local; NULL for mailboxes */
	book_counter events;                  /* number of events accepted by the sink */
	book_counter tried[WEIR_CLASSES_MAX]; /* by class, number of events offered to the sink */
	book_counter made;                    /* of these, made by the sender (weir/op.h) */
	struct mailbox *mailbox;              /* destination if `sink` is NULL */
};

/** Largest number of free slots for tickets that a thread keeps for its own holds. 16 is a choice:
 *  half of them move at once between the thread and the list that all threads share, so a hold
 *  costs at most an eighth of an atomic operation on that list. A slot has 128 bytes. */
#define LOCAL_SLOTS 16

/** Smoothing of the service time: each batch has the weight 1 / SERVICE_SMOOTH. 4 is a guess: fast
 *  enough to follow a stage that slows down, slow enough to ignore a single odd batch. */
#define SERVICE_SMOOTH 4

struct local {
	/* What each batch uses is up to conf_version: a cache line, before that of the book. */
	WEIR_ALIGNED struct weir_stage *stage;
	struct thread *thread;
	/* one per class; NULL if this thread neither runs the stage nor may end its holds */
	struct time_book *times;
	struct answer_book *answers; /* one per class; NULL unless this is a loop of the source */
	/* NULL if this thread never runs the stage, or the stage has no thread state */
	void *thread_state;
	bool runs;         /* this thread may run the stage */
	bool thread_ready; /* ops->thread_init succeeded */
	bool batched;      /* a batch policy chooses the batch size */
	int n_outboxes;
	/* Smoothed service time of an event, negative until it has been measured. It limits the
	 * size of the next batch, unless a batch policy sets the size. */
	int64_t service_ns;
	struct conf *conf;     /* the local holds a reference */
	uint64_t conf_version; /* version of `conf` */
	WEIR_ALIGNED struct book book;
	uint64_t conf_batch;   /* number of the thread's batch in which `conf` was last used */
	struct local *next;    /* link in the stage's list, under the graph's threads_lock */
	struct thread_id left; /* of the thread; valid once it has left the graph (struct gone) */
	/* Number of events, by class, in the outbox `again` that were held when they were requeued,
	 * or whose batch the queue counts (struct keep). They count as held until they are queued. */
	int again_held[WEIR_CLASSES_MAX];
	bool again_holds; /* an element of again_held is not 0 */
	/* requeued events, which return to the queue of this stage; `outlet` is OUTLET_AGAIN */
	struct outbox again;
	struct outbox take; /* see OUTLET_TAKE */
	/* free slots for the stage's tickets (graph/tickets.c); the last one is used first */
	int n_slots;
	struct slot *slot[LOCAL_SLOTS];
	WEIR_ALIGNED struct outbox outbox[];
};

/* A batch that was handled: `n` events, per_class[c] of them in class c. again[c] events of class c
 * were requeued by the handler. */
struct served {
	int per_class[WEIR_CLASSES_MAX], again[WEIR_CLASSES_MAX], n;
	int64_t took_ns; /* time in the handler */
};

/** The time slice of the event that the handler works on (weir_slice_over), in a core group with the
 *  gate `cutoff`. */
struct slice {
	int64_t ns; /* its length; 0: no slices */
	/* batch in which the handler asked last, the first slot that was not NULL then, and when the
	 * slice of that event began */
	uint64_t batch;
	int at;
	int64_t from_ns;
	uint32_t yielded; /* events that handlers of the group have put back since the last look */
	int64_t again_ns; /* time at which events were last put back: their `queued_ns` */
};

struct drain_signal;
struct payload_budget;
struct slowest;
struct thread_link;

struct thread {
	struct weir_graph *graph;
	struct drain_signal *drain;      /* owned by the graph */
	struct slowest *slowest;         /* the list of the slowest events; owned by the graph */
	struct payload_budget *payloads; /* owned by the graph */
	struct thread *next; /* link in the graph's list of threads, under threads_lock */
	char name[24];
	/* number of the thread in its pool, or of its loop; -1 if there is none, or until it is set,
	 * right after the thread has registered */
	atomic_int number;
	int64_t now_ns;      /* start time of the current batch */
	int64_t happened_ns; /* of a thread with a loop: what its descriptors report is not older */
	uint64_t batch;      /* number of the current batch */
	struct outbox *dirty, **dirty_tail;
	/* stage whose handler is running; for crash reports and views */
	_Atomic(struct weir_stage *) running;
	_Atomic(const struct weir_event_type *) running_type;
	/* start time of the handler call in the loop of a stage (graph/stage_loop.c), or 0 */
	_Atomic int64_t loop_since_ns;
	/* `behind_ns` is the time, by class, that inline stages have taken in this handler thread
	 * since its last batch; `behind` is set if any inline stage has run. If the batch must be
	 * recorded together with that time, `late` is the batch; otherwise late.n is 0. */
	int64_t behind_ns[WEIR_CLASSES_MAX];
	bool behind;
	struct served late;
	/* Counts by class, for the stage whose handler the thread is running. `holds` is the number
	 * of events held since the batch began, minus those released. `reserved` is the number of
	 * events of the batch that the queue of the stage counts as in its handler (struct keep). */
	int holds[WEIR_CLASSES_MAX], reserved[WEIR_CLASSES_MAX];
	struct queue *unsettled; /* that queue, until hold_settle; NULL if both numbers are 0 */
	/* For a stage with a width, by class: how many events of the batch the handler has held,
	 * and how many it has requeued. `stays` is set if one of these numbers is not 0. */
	int stay_held[WEIR_CLASSES_MAX], stay_queued[WEIR_CLASSES_MAX];
	bool stays;
	/* For inline stages with a width (sink.direct): of the events admitted last, this thread
	 * runs `to_run`, and the others are queued. `no_direct` is set while this thread must not
	 * run any. */
	int to_run;
	bool no_direct;
	/* the batch that the handler is working on, needed if the thread exits in the handler */
	struct weir_event **run_ev;
	int run_n;
	struct weir_event *offer[WEIR_BATCH_MAX]; /* events of the outbox being offered */
	/* Odd while the thread offers or flushes events, when counters may be ahead of queues.
	 * Increases with each offer, flush and batch. */
	_Atomic uint64_t moves;
	struct slice slice;
	struct slab slab; /* free memory for events */
	/* number of events whose children (weir_child) handlers of this thread have not sent yet */
	uint32_t unsent;
	int refused_by; /* stage that refused the events being returned, or WEIR_NO_STAGE */
	int tid;        /* kernel thread id */
	struct schedstat_sample used; /* of a loop, at the last look (graph/thread_time.c) */
	struct pool *pool;            /* pool of a handler thread, or NULL */
	int copy;       /* that of `pool` to which the thread belongs, if it has copies */
	bool spare;     /* stands in for core `number` (sched/spare.h); set before `number` */
	bool sent_home; /* this batch has sent events to a queue that `pool` serves */
	/* core of a core group whose thread it is (sched/cores.h); NULL otherwise, and once the
	 * thread is leaving */
	struct core *core;
	/* Of events that the core offers: so many of them its cell may get (set by sink.splice), and so
	 * many admitted ones are to be put there instead of into the queue (set by sink_offer). */
	uint32_t cell_room;
	int celled;
	struct weir_stage *source;             /* source of an I/O thread, or NULL */
	struct thread_link *link;              /* interface of an I/O thread to others, or NULL */
	_Atomic(struct weir_stage *) refusing; /* stage whose ops->refused is running */
	/* the configuration that weir_conf last returned for a stage without a local; holds a
	 * reference */
	struct conf *lent;
	/* start time of the call that the watchdog last reported for this thread */
	int64_t stuck_since_ns;
	int n_locals;
	/* By stage id; NULL until first used. Other threads read only the element of the stage in
	 * `running` (graph/stuck.c), and otherwise walk the stages' lists of locals. */
	struct local **local;
	struct outbox *mail[MAILBOX_SETS]; /* sets of outboxes (mailbox.h), NULL until allocated */
};

extern _Thread_local struct thread *thread_current;

/** The struct of the calling thread, which must be registered with a graph. */
static inline struct thread *thread_self(void)
{
	WEIR_ASSERT(thread_current != NULL);
	return thread_current;
}

/** moves_begin and moves_end mark the time in which the calling thread `t` moves events. A view
 *  that sees these stores out of order may compute an error bound (law_slack) that is too small by
 *  one batch. That is rare and not worth a fence for each flush. */
static inline void moves_begin(struct thread *t)
{
	atomic_store_explicit(&t->moves, atomic_load_explicit(&t->moves, memory_order_relaxed) | 1,
	    memory_order_relaxed);
}

static inline bool moves_going(const struct thread *t)
{
	return atomic_load_explicit(&t->moves, memory_order_relaxed) & 1;
}

static inline void moves_end(struct thread *t)
{
	atomic_store_explicit(&t->moves,
	    (atomic_load_explicit(&t->moves, memory_order_relaxed) | 1) + 1,
	    memory_order_release); /* pairs with motion_of in graph/view.c */
}

/** Allocate the local of the calling thread `t` at stage `id` and add it to the stage's list.
 *  Returns NULL if out of memory. The thread_init of an inline stage is called later, before its
 *  first run (thread_prepare). */
struct local *local_open(struct thread *t, int id);

/** The local of the calling thread `t` at stage `id`, allocated if necessary. Returns NULL if out
 *  of memory. */
static inline struct local *local_find(struct thread *t, int id)
{
	struct local *l = t->local[id];

	return WEIR_LIKELY(l != NULL) ? l : local_open(t, id);
}

/** Lock and return the common book of stage `id`. There are no lock annotations, because the lock
 *  belongs to the graph, whose type is incomplete here. */
struct book *book_lock_common(struct thread *t, int id);
void book_unlock_common(struct thread *t);
/** Add all counters of `from` to the common book. */
void book_add_common(struct thread *t, int id, const struct book *from);

/** Add `n` to metric `row` in the common book of stage `id` of `g`. Any thread. */
void book_count_common(struct weir_graph *g, int id, int row, int64_t n);

/** The book in which the calling thread `t` counts at stage `id`. The caller must return it with
 *  book_give before any other call. */
static inline struct book *book_take(struct thread *t, int id)
{
	struct local *l = local_find(t, id);

	return WEIR_LIKELY(l != NULL) ? &l->book : book_lock_common(t, id);
}

static inline void book_give(struct thread *t, int id, struct book *book)
{
	book_changed(book);
	if (WEIR_UNLIKELY(t->local[id] == NULL))
		book_unlock_common(t);
}

/** Put `o` on the dirty list of the calling thread. */
static inline void outbox_mark(struct thread *t, struct outbox *o)
{
	if (!o->dirty) {
		o->dirty = true;
		o->next = NULL;
		*t->dirty_tail = o;
		t->dirty_tail = &o->next;
	}
}

/** Put `ev` into an outbox of the calling thread. */
static inline void outbox_add(struct thread *t, struct outbox *o, struct weir_event *ev)
{
	ev->next = NULL;
	*o->tail = ev;
	o->tail = &ev->next;
	o->n++;
	outbox_mark(t, o);
}

/** Put `n` events into an outbox of the calling thread. `next` links them, from `first` to `last`. */
static inline void outbox_add_run(
    struct thread *t, struct outbox *o, struct weir_event *first, struct weir_event *last, int n)
{
	last->next = NULL;
	*o->tail = first;
	o->tail = &last->next;
	o->n += n;
	outbox_mark(t, o);
}

/** Record that a handler has served the batch `b`, and that inline stages took `behind_ns` in the
 *  same thread. The number of events and their service time are added together, so that a mean
 *  computed from both is consistent. */
void service_record(struct local *l, const struct served *b, int n_classes, int64_t behind_ns);

/** Add `n`, which may be negative, to the number of events of the class that stage `id` holds. In
 *  the stage's own handler the change is counted when the batch ends (hold_settle), otherwise
 *  immediately. */
void hold_count(struct thread *t, int id, int class_id, int n);

/** End the hold of ev[0..n), which are held by one stage, have one class, and leave the stage now.
 *  If the stage has a width, this call records their service times, and lets a thread take queued
 *  events in their place (hold_wake). */
void hold_end(struct thread *t, struct weir_event *const *ev, int n);

/** Let a thread take the queued events of `st` that the width has room for now. Does nothing in a
 *  handler of `st`, since the thread does this when the handler has returned. */
void hold_wake(struct thread *t, struct weir_stage *st);

/** Record the time that `ev`, which is held and is about to be requeued, has been in service. */
void hold_record_part(struct thread *t, const struct weir_event *ev);

/** Reset the counts of the events that stay in the stage (struct thread, `stays`). */
static inline void hold_forget_stays(struct thread *t)
{
	memset(t->stay_held, 0, sizeof(t->stay_held));
	memset(t->stay_queued, 0, sizeof(t->stay_queued));
	t->stays = false;
}

/** Note that the queue `q` counts ev[0..n) as in the handler that the thread is about to call. */
void hold_reserve(struct thread *t, struct queue *q, struct weir_event *const *ev, int n);

/** Move the counts in t->holds and t->reserved to the counters of their queue. Called when the
 *  handler has returned, or the thread is exiting before that. */
void hold_settle_counts(struct thread *t);

static inline void hold_settle(struct thread *t)
{
	if (WEIR_UNLIKELY(t->unsettled != NULL))
		hold_settle_counts(t);
}

/** Hold ev[0..n), whose tickets at stage `st` have expired, without tickets from now on. */
void hold_expired(const struct weir_stage *st, struct weir_event *const *ev, int n);

/** Stop counting the events requeued from `l` as held. Called when they have been queued. */
void hold_requeued(struct local *l);

/** Add the value `ns` to a histogram `n` times. */
void hist_book_add(struct hist_book *h, int64_t ns, uint64_t n);

/** Add the counts of `from` to `into`. */
void hist_book_sum(struct weir_hist *into, const struct hist_book *from);

#endif
