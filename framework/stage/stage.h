/* SPDX-License-Identifier: MIT */
/*
 * The framework's representation of a stage: its type, links, sink and state. The type, the links
 * and the placement are constant after the build.
 */
#ifndef WEIR_STAGE_STAGE_H
#define WEIR_STAGE_STAGE_H

#include <weir/spec.h>
#include <weir/stage.h>

#include "base/lock.h"
#include "stage/degrade.h"
#include "stage/sink.h"
#include "stage/thread.h"

/** Record the cost of the batch that the calling handler thread took from the queue of `s`. The
 *  cost includes the time that inline stages took in this thread, so call this after the outboxes
 *  are flushed. */
static inline void thread_settle(struct sink *s)
{
	const struct thread *t = thread_self();

	if (WEIR_UNLIKELY(t->behind || t->late.n > 0))
		thread_settle_late(s);
}

/** A parsed `with:` section: immutable, shared by threads, freed with the last reference. */
struct conf {
	atomic_int refs;
	const struct weir_knob *knobs;
	_Alignas(16) unsigned char data[];
};

/** An outlet and the stage it is linked to. */
struct outlet {
	const char *name;
	struct weir_stage *to; /* NULL if unlinked */
	/* type of the events sent to the outlet, NULL if unknown */
	const struct weir_event_type *type;
	bool optional, any, loop;
};

struct replicas;

/** The last stuck call of a stage whose stack was looked for (graph/watch.c). */
struct stuck_call {
	int64_t since_ns; /* when it began; 0: there was none */
	struct weir_stuck_view view;
};

struct weir_stage {
	struct sink sink;
	/* Each batch reads the members up to `continues`: one cache line, as in struct sink. */
	WEIR_ALIGNED const struct weir_stage_ops *ops;
	/* type of the input events; NULL if any type is allowed */
	const struct weir_event_type *type;
	/* passes events to `loop`, whose thread calls ops->handle, or ops->expired for events whose
	 * hold has expired; NULL for a stage without a loop */
	void (*to_loop)(struct weir_stage *st, struct weir_event **ev, int n);
	struct weir_graph *graph;
	struct outlet *outlets;
	int n_outlets;
	unsigned flags; /* ops->flags */
	int id, depth;
	atomic_bool continues; /* has had events with continuations (weir/op.h) */
	const char *name;
	/* the graph's copy of the spec, with effective values; under graph->lock */
	struct weir_stage_spec *spec;
	struct pool *pool; /* NULL for sources, and for inline stages without a width */
	struct pool *host; /* of a source: the core group whose threads are its loops, or NULL */
	struct weir_stage *predecessor; /* set while weir_graph_succeed starts the graph */
	/* set before the drain if another graph takes over; constant after that */
	struct weir_stage *successor;
	/* this stage and all stages downstream differ from the old graph at most in live knobs */
	bool unchanged;
	char *key_arg;                   /* argument of the key field, "x-user" of header.x-user */
	char *cost_arg;                  /* likewise of the field with the expected work */
	struct payload_budget *payloads; /* that of the graph */
	void *state;               /* NULL if the stage has replicas, or its type has no state */
	struct replicas *replicas; /* with `mode: replicated` (stage/replica.h), otherwise NULL */
	bool inited;               /* ops->init succeeded */
	/* number of the last search (stage/downstream.c) that visited this stage; main thread */
	unsigned walk;
	/* position that an error of init or start points to; NULL means the stage as a whole */
	const struct weir_mark *blamed;
	struct weir_loop *loop; /* of a stage with WEIR_STAGE_LOOP, while the graph runs */
	/* Number of held events on their way to a callback: those whose hold has expired, and those
	 * that were sent to `loop`. An event begins to count before it leaves its former place, and
	 * counts until the callback has returned. A drain waits for these events. */
	atomic_int arriving;
	struct lock conf_lock;
	struct conf *conf WEIR_GUARDED_BY(conf_lock);
	_Atomic uint64_t conf_version; /* incremented when conf is replaced */
	/* weir_log_first */
	bool unhandled_logged, unlinked_logged, payload_logged, children_logged;
	atomic_int steer; /* enum weir_steer; written under graph->lock */
	/* chooses batch sizes; if NULL, they are bounded by cohort.max as set by the operator */
	struct batcher *batcher;
	/* cohort.max as set by the operator: upper bound for the batcher */
	atomic_int cohort_bound;
	/* chooses the width; NULL if the width is constant */
	struct widener *widener;
	/* the events held with a ticket; NULL if the stage has no width */
	struct tickets *tickets;
	/* bounds of the width as set by the operator; written under graph->lock */
	atomic_int width_min, width_max;
	struct thread_deaths deaths; /* I/O threads of the stage that exited unexpectedly */
	uint64_t deaths_told;        /* deaths already reported; used only by the control thread */
	/* number of I/O threads held up by a handler; written under threads_lock */
	atomic_int loops_held;
	/* maximum number of clients that each loop of a source has; 0: no limit. Constant. */
	int64_t per_loop;
	atomic_uint children; /* largest number of children that an event may have at a time */
	bool refused_logged;
	weir_purge_fn *purge; /* weir_purges, or NULL; constant after ops->init */
	/* stage whose thread_init prevented an I/O thread from starting; main thread */
	const struct weir_stage *refused_by;
	/* handler calls that take longer than this are reported; 0 reports none */
	int64_t stuck_ns;
	_Atomic uint64_t stuck;         /* number of calls that took longer than stuck_ns */
	_Atomic uint64_t busy_shown_ns; /* highest busy_ns that a view has reported */
	/* time at which the watchdog last logged a call stack of this stage */
	int64_t stuck_shown_ns;
	struct stuck_call stuck_call; /* under threads_lock of the graph */
	struct degrade degrade;       /* used only by the control thread */
	/* has reached the cheapest level since it last had full quality; used only by the control
	 * thread */
	bool degrade_worst;
	/* degradation level in tenths, 0 .. DEGRADE_TENTHS; read by any thread */
	atomic_int degraded;
};

/** Whether the stage bounds the number of events in work (`width:`). */
static inline bool stage_has_width(const struct weir_stage *st)
{
	return st->flags & WEIR_STAGE_HOLDS;
}

/** Call ops->handle, then finish the events that it has left in ev[0..n), and report them. */
void stage_handle(struct weir_stage *st, struct weir_event **ev, int n);

/** Pass ev[0..n) to their continuations, those with none to ops->handle. */
void stage_continue(struct weir_stage *st, struct weir_event **ev, int n);
/** Count `ev` as running: an event of a source, which is new, or one that the stage holds. A new event
 *  of another stage is counted as spawned, and stays new until it is admitted. */
void stage_begin(struct thread *t, const struct weir_stage *st, struct weir_event *ev);
/** The part of stage_keep for a stage with a width. */
void stage_note_kept(struct thread *t, struct weir_stage *st, struct weir_event *ev);
/** As hold_count. */
static inline void stage_count_held(struct thread *t, struct weir_stage *st, int class_id, int n)
{
	if (atomic_load_explicit(&t->running, memory_order_relaxed) != st) {
		queue_hold(&st->sink.queue, class_id, n);
		return;
	}
	t->holds[class_id] += n;
	t->unsettled = &st->sink.queue;
}
/** Note that `ev`, of the handler that the thread may be running, stays in the stage, and occupies a
 *  slot there. */
static inline void stage_keep(struct thread *t, struct weir_stage *st, struct weir_event *ev)
{
	if (WEIR_UNLIKELY(stage_has_width(st)))
		stage_note_kept(t, st, ev);
	stage_count_held(t, st, ev->class_id, 1);
}
/** Finish a running event that occupies a slot as a held one does, and let another take its place. */
void stage_end_kept(struct thread *t, struct weir_stage *st, struct weir_event **slot, int status);

/** The graph of a stage, for use within the framework. */
struct weir_graph *stage_graph(const struct weir_stage *st);

/** Parse the `with:` node (NULL gives the defaults) into a new configuration *conf. The caller owns
 *  one reference. Returns 0, or WEIR_EINVAL or WEIR_ENOMEM with the errors in `errs`. */
int conf_new(const struct weir_stage_ops *ops, const struct weir_node *with, const char *stage,
    struct conf **conf, struct weir_errs *errs);
/** Release a reference to `conf`. NULL is allowed. */
void conf_put(struct conf *conf);
/** The current configuration. The caller gets a reference. */
struct conf *stage_conf_get(struct weir_stage *st);
/** Make `conf` the current configuration. Takes over the caller's reference. */
void stage_conf_set(struct weir_stage *st, struct conf *conf);

/** Sink callback: run the handler on a batch in the calling thread and update all counters. */
void stage_run(struct sink *sink, struct weir_event **ev, int n);

/** Pass ev[0..n), n >= 1, events of the stage of `sink` whose hold has expired (queue_take_back),
 *  to ops->expired, in the calling thread or in the loop of the stage. Finish the events that the
 *  callback leaves in `ev`. */
void stage_expired(struct sink *sink, struct weir_event **ev, int n);
/** Finish those of ev[0..n), which are running or held, whose family has ended, as WEIR_ECANCELLED. Move
 *  the others to the front and return their number. */
int stage_end_over(struct weir_event **ev, int n);
/** Complete a call of stage_expired with `n` events. Called when it has returned, or the thread has
 *  exited in it, and when the events that the callback emitted have been sent. */
void stage_expired_over(struct sink *sink, int n);
/** End ev[0..n), which waited for `st` and have been taken from its queue or from a cell, with
 *  `status`. */
void stage_end_waiting(struct weir_stage *st, struct weir_event **ev, int n, int status);
/** Like stage_expired, but always in the calling thread, and without recording times. */
void stage_expire(struct weir_stage *st, struct weir_event **ev, int n);

/** Sink callback: fill in how many threads serve the queue of `sink`, for its policy. Any
 *  thread. */
void stage_look(const struct sink *sink, int rank, struct admission_view *view);
/** Sink callback: add the work of other stages of the group to that in `view`. Any thread. */
int64_t stage_beside(const struct sink *sink, const struct admission_view *view);
/** Sink callback: number of threads among which the stage's pool distributes partitions
 *  (pool_seats). */
int stage_ranks(const struct sink *sink);
/** Sink callback: wake threads of the stage's pool. */
void stage_wake(struct sink *sink, uint32_t before, uint32_t length, uint64_t parts);

/** Pass ev[0..n), which the sink linked to `outlet` of `st` has refused for reason[0..n), to
 *  ops->refused. Finish the events that ops->refused leaves in `ev`. */
void stage_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, const int *reason);

/** Finish the events of ev[0..n) that stage_run must not handle at `now_ns`; the first `kept` stay, and
 *  are marked. Moves those that stay to the front, marks them as running, and returns their number.
 *  Requeued events stay and keep their state; their number is added to *again. */
int stage_drop_some(
    struct sink *sink, struct weir_event **ev, int kept, int n, int64_t now_ns, int *again);

/** Finish the events of an inline stage's batch whose family has ended: no queue, from which they
 *  would have been taken, is before the handler. Returns the number of the others, which are at the
 *  front. */
int stage_drop_over(struct sink *sink, struct weir_event **ev, int n);
/** Shed events of ev[0..n) that have waited longer than the policy, which has `drop`, allows. Returns the
 *  number of those that stay, which are at the end of `ev`. */
int stage_drop_late(struct sink *sink, struct weir_event **ev, int n, int64_t now_ns);

#endif
