/* SPDX-License-Identifier: MIT */
/*
 * The internals of a graph: stages, pools, threads, and their control.
 *
 *   BUILT --start--> RUNNING --drain--> DRAINING --> DRAINED (threads may be left in handlers)
 *
 * Locking: the main thread builds, starts and drains the graph; `lock` serialises knob changes;
 * threads register and unregister under `threads_lock`; the control thread (control/) writes the
 * journal under the journal's own lock.
 */
#ifndef WEIR_GRAPH_GRAPH_H
#define WEIR_GRAPH_GRAPH_H

#include <weir/graph.h>

#include "base/lock.h"
#include "event/drain_signal.h"
#include "graph/change_log.h"
#include "stage/stage.h"

enum graph_phase { GRAPH_BUILT, GRAPH_RUNNING, GRAPH_DRAINING, GRAPH_DRAINED };

/** The counters of a stage: the locals of live threads, and the totals of threads that have exited.
 *  Guarded by threads_lock. */
struct gone {
	struct local *books; /* locals of live threads at this stage, linked by `next` */
	/* What threads that have exited have counted, again by thread, for profiles (profile.c):
	 * handler threads and loops, one local for all threads of the same number, also linked by
	 * `next`. Their number is bounded by that of the threads that have run at once. */
	struct local *left;
	struct book book; /* the common book: totals of threads that have exited */
	/* times of those threads by class; NULL if none of them ran the stage */
	struct time_book *times;
	struct time_book *first_times; /* becomes `times`, since an allocation could fail then */
	struct answer_book *answers;   /* of a source, by class; NULL for other stages */
	book_counter *link_events;     /* events accepted, by outlet */
	book_counter *link_made;       /* events offered that the stage has made, by outlet */
	book_counter *link_tried;      /* events offered, by outlet * WEIR_CLASSES_MAX + class */
};

struct class_match {
	const struct weir_event_type *type; /* the type that has `field` */
	struct field_ref field;             /* field.arg is `arg` */
	char *arg;                          /* owned */
	char *pattern;                      /* owned, without a trailing '*' */
	size_t n;                           /* length of `pattern` */
	bool prefix;
};

#define CLASSES_PREFIX   "classes."
#define CLASS_PATH_BYTES (sizeof(CLASSES_PREFIX) + WEIR_NAME_MAX)

struct graph_class {
	const char *name;
	char path[CLASS_PATH_BYTES]; /* "classes.NAME", its name as an owner of knobs */
	int n_match;
	struct class_match *match;
	/* objective, and whether the configuration or an operator has set it; changes of both are
	 * made under the lock of the graph and take effect with the next event */
	_Atomic int64_t slo_ns;
	_Atomic bool slo_set;
};

struct control;
struct plan;
struct width_view;
struct pool_refusal;
struct journal;
struct override;
struct meter;
struct graph_route;
struct share;
struct groups;
struct thread_time;
struct slowest;
struct inheritance;

/** The control thread's copy of the summed counters of a stage. */
struct stage_sums {
	bool known;
	uint64_t changes; /* change number of the stage when its counters were read */
	uint64_t offered, completed;
	/* `ended_busy_ns` is the time of handle calls that have ended, including inline stages;
	 * `busy_ns` also includes the calls in progress. */
	uint64_t ended_busy_ns, busy_ns;
	uint64_t behind_ns; /* of these, the time of inline stages */
	uint64_t batches, items, running;
};

struct weir_graph {
	struct weir_spec *spec;
	struct plugin_hold *plugins; /* its stage types stay loaded */
	int n_stages, n_pools, n_classes;
	struct weir_stage **stages; /* by stage id */
	int *order;                 /* stage ids, upstream first */
	struct pool **pools;
	struct graph_class *classes;
	/* By class; constant after the build. Priority 0 is the highest; classes of equal priority
	 * are treated equally. A graph without classes has a single class with priority 0 and
	 * guarantee 0. */
	int class_priority[WEIR_CLASSES_MAX];
	double class_guarantee[WEIR_CLASSES_MAX]; /* guaranteed share of service, 0..0.5 */
	struct lock lock;                         /* guards the effective values in stage specs */
	struct override *overrides WEIR_GUARDED_BY(lock);
	/* what a reload could not carry over and has not logged yet */
	struct dropped *dropped WEIR_GUARDED_BY(lock);
	bool steerable WEIR_GUARDED_BY(lock); /* the graph is running, so stages may be paused */
	/* another graph is taking over or has taken over, so operator changes are rejected */
	bool succeeded WEIR_GUARDED_BY(lock);
	bool followed WEIR_GUARDED_BY(lock); /* another graph has taken over for good */
	bool stays WEIR_GUARDED_BY(lock);    /* no other graph may take over any more */
	/* time at which the next temporary override expires, INT64_MAX if there is none */
	_Atomic int64_t expires_ns;
	struct payload_budget *payloads;
	struct change_log change_log;
	struct lock threads_lock;
	struct thread *threads WEIR_GUARDED_BY(threads_lock);
	struct gone *gone WEIR_GUARDED_BY(threads_lock);
	/* sum of thread.moves over the threads that have exited, plus 1 for each exit */
	uint64_t gone_moves WEIR_GUARDED_BY(threads_lock);
	struct thread *drain_thread; /* allocated when the graph starts, used by the drain */
	/* Of the handler calls that are hung (graph_watch_hung), the one that began first. Written
	 * by the control thread, read by any thread. */
	_Atomic(struct weir_stage *) hung; /* stage of that call; NULL if no call is hung */
	_Atomic int64_t hung_since_ns;
	struct control *control;
	_Atomic int64_t ticked_ns; /* start of the last completed round of the control thread */
	/* change numbers (graph_stage_changes) by stage id, read again at the start of each tick of
	 * admission and of each round of the pools; used only by the control thread */
	uint64_t *changes;
	struct stage_sums *sums; /* by stage id; used only by the control thread */
	int64_t learn_ns;        /* when the next tick of admission is due; likewise */
	uint64_t family_ends;    /* families that had ended at the last search; likewise */
	/* by stage id, NULL for policies that do not learn; used only by the control thread */
	struct meter **meters;
	/* by stage id, NULL if no pool has several stages; used only by the control thread */
	struct share *shares;
	struct thread_time *times; /* see graph/thread_time.h */
	struct groups *groups; /* NULL if there is no core group; under `lock`, see graph/group.c */
	struct slowest *slowest; /* has its own lock */
	struct depot *depot;     /* memory of events (event/slab.h); has its own lock */
	/* `inherited` has the totals of the previous graph and is set before the start; `bequest`
	 * has the totals for the next graph. Each object is shared with the other graph and has its
	 * own lock. */
	struct inheritance *inherited, *bequest;
	/* NULL if no policy decides upstream; used only by the control thread */
	struct graph_route *route;
	atomic_bool started; /* the sources have been started */
	atomic_int phase;
	atomic_int overload_mode; /* enum weir_admission_mode; copied to every sink's mode_cap */
	atomic_bool hurry;
	int64_t built_ns, built_wall_ns; /* constant */
	/* 0 before the start, when the admin endpoint may already read it */
	_Atomic int64_t started_ns;
	struct drain_signal drain; /* the drain waits here */
};

/** Calls from a graph to the code that changes it for operators. operate/changes.c defines them, so
 *  that this folder does not depend on operate/. Main thread, except `tick`. */
extern const struct graph_operator {
	void (*init)(struct weir_graph *g);
	void (*fini)(struct weir_graph *g);
	void (*started)(struct weir_graph *g); /* all stages run: they may be paused now */
	void (*drains)(struct weir_graph *g);  /* before a drain: no stage may stay paused */
	/* called by the control thread; costs one load if there is nothing to do */
	void (*tick)(struct weir_graph *g, int64_t now_ns);
} graph_operator;

/** Bind the classes of the spec to fields: of the events that the first source emits, and of payloads.
 *  Returns 0, or a WEIR_E code with the errors in `errs`. */
/** Let the objective of class `c` in g->spec take effect for new events, and for views. Does nothing
 *  to the stages, some of which have the objective as theirs. */
void graph_class_slo(struct weir_graph *g, int c);
int graph_classes_bind(struct weir_graph *g, const struct plan *plan, struct weir_errs *errs);
void graph_classes_free(struct weir_graph *g);

/** Set the overload mode of the spec in all sinks. Called during the build. */
void graph_overload_init(struct weir_graph *g);

/** Create the control thread's state and meters, but do not start the thread. Returns 0 or
 *  WEIR_ENOMEM. */
int graph_control_new(struct weir_graph *g);
/** Free what graph_control_new allocated. The control thread must have been stopped. */
void graph_control_free(struct weir_graph *g);

/** Start `g`, as weir_graph_start does. `old` (may be NULL) is the running graph that `g`
 *  succeeds. */
int graph_start(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs);

/** Allocate the data for admission upstream (admission/route.h). Does nothing if no stage is a
 *  front, or no queue is downstream of another. Returns 0 or WEIR_ENOMEM. */
int graph_route_new(struct weir_graph *g);
void graph_route_free(struct weir_graph *g);
/** Every ROUTE_TICK_NS, learn the routes of events from the counters of the stages that have
 *  changed (graph->changes), and publish the results in the sinks. Called by the control thread in
 *  each tick, after the meters. */
void graph_route_tick(struct weir_graph *g, int64_t now_ns);

/** Allocate the data for pools shared by several stages. Does nothing if each pool has one stage.
 *  Returns 0 or WEIR_ENOMEM. */
int graph_share_new(struct weir_graph *g);
void graph_share_free(struct weir_graph *g);
/** Estimate the share of its pool that each stage gets, and publish it in the sinks. Called by the
 *  control thread in each tick. */
void graph_share_tick(struct weir_graph *g, int64_t now_ns);

/** Allocate the batcher of a stage (graph/batch.c) unless its batch policy is static. Returns 0 or
 *  WEIR_ENOMEM. */
int graph_batch_new(struct weir_stage *st);
void graph_batch_free(struct weir_stage *st);
/** Set cohort.max of `st` to `max`. Any thread. */
void graph_batch_bound(struct weir_stage *st, int max);
/** Run the batchers. Called by the control thread in each round, ten times a second. */
void graph_batch(struct weir_graph *g, int64_t now_ns, struct journal *journal);

/** Set the first width of a stage that holds events, and allocate its widener (graph/width.c)
 *  unless its width policy is static. Returns 0 or WEIR_ENOMEM. */
int graph_width_new(struct weir_stage *st);
void graph_width_free(struct weir_stage *st);
/** Set the bounds of the width of `st` to those of its spec. If that changes the width, write it to
 *  the journal. The caller holds graph->lock. */
void graph_width_bound(struct weir_stage *st);
/** Let `st` continue with the width and the knowledge of `old`, its counterpart in the graph that
 *  is being replaced, if both have the same width policy. If the width of `old` is outside the
 *  bounds of `st`, `st` begins with the nearest bound, and the change is written to the journal.
 *  Any thread. */
void graph_width_carry(struct weir_stage *st, struct weir_stage *old);
/** Fill in what the width policy of `st` sees. Any thread. */
void graph_width_look(struct weir_graph *g, const struct weir_stage *st, struct width_view *v);
/** Describe in `text` what the width policy of `st` knows, or store "". Any thread. */
/** Return after which wait an event of a stage with 'discipline: shortest' is first: its `starve`,
 *  or a share of its objective. 0: never. */
int64_t graph_starve_ns(const struct weir_stage *st);

void graph_width_explain(struct weir_stage *st, char *text, size_t size);
/** Run the wideners. Called by the control thread in each round, ten times a second. */
void graph_width(struct weir_graph *g, int64_t now_ns, struct journal *journal);

/** Start and end the loop of `st`, if its type has WEIR_STAGE_LOOP. Main thread. Returns the code
 *  of weir_loop_start. */
int graph_loop_start(struct weir_stage *st);
void graph_loop_end(struct weir_stage *st);

/** Allocate the table of tickets of a stage that holds events. Returns 0 or WEIR_ENOMEM. */
int graph_tickets_new(struct weir_stage *st);
void graph_tickets_free(struct weir_stage *st);
/** Return the number of events that `st` holds with a ticket. Approximate while they move. Any
 *  thread. */
int64_t graph_tickets_out(struct weir_stage *st);
/** As weir_hold_claim, but the event keeps its continuation. */
struct weir_event *graph_ticket_claim(struct weir_stage *st, uint64_t ticket);
/** Move the free slots that the thread of `l` keeps to the table of tickets, because the thread is
 *  about to leave the graph. */
void graph_tickets_leave(struct local *l);
/** Take from `st` all events that it holds with tickets. Returns them linked by `next`; the caller
 *  must finish them. An event that is held with a ticket after this call ends at once, as
 *  WEIR_ECLOSED. Called by the thread of the drain. */
struct weir_event *graph_tickets_close(struct weir_stage *st);
/** Close the queues, upstream first, and finish as WEIR_ECLOSED the events in them and the events
 *  that are held with tickets. Returns the number of these events. Called by the thread of the
 *  drain, once or several times. */
uint64_t graph_end_queued(struct weir_graph *g);
/** Take events that wait with tickets and whose family has ended out of their slots, if a family has
 *  ended since the last call, and give them back to the threads of their stages. Called by the control
 *  thread. */
void graph_families_tick(struct weir_graph *g);
/** Whether graph_tickets_close has been called. Any thread. */
bool graph_tickets_closed(const struct weir_stage *st);

/** Change the degradation level of each stage by one step if the pressure requires that and a step
 *  is due. Called by the control thread in each round. */
void graph_degrade(struct weir_graph *g, int64_t now_ns);

/** Describe in `text` why threads could not start. */
void graph_refusal_text(const struct pool_refusal *refusal, char *text, size_t size);
/** Mark the I/O threads that are held up by a handler. If a mark has changed, wake the I/O threads
 *  of the source. Called by the control thread in each round. */
void graph_watch_loops(struct weir_graph *g, int64_t now_ns);
/** Return the start time of the handler call that thread `t` is running, and its stage in *st. Returns 0
 *  if there is no such call. Under threads_lock. */
int64_t graph_in_call(const struct thread *t, struct weir_stage **st);
/** Find the cores that sleep in a handler, report them, and let spare threads stand in for them. Returns
 *  when it must be called again, INT64_MAX if there is no core group. Control thread. */
int64_t graph_watch_cores(struct weir_graph *g, int64_t now_ns);
/** Find the call that weir_graph_hung reports. Called by the control thread in each round. */
void graph_watch_hung(struct weir_graph *g, int64_t now_ns);
/** Describe in `text` why `st` cannot serve, or store "" if it can. Any thread. */
void graph_trouble(struct weir_graph *g, struct weir_stage *st, char *text, size_t size);

/** Largest number of threads named in a drain report. */
#define LEFT_TOLD 3
/** Return the number of threads that have not returned from a handler. If `io_alone` is set, only
 *  I/O threads of sources are counted. */
int graph_left(struct weir_graph *g, bool io_alone);
/** Return the number of threads that have not returned from a handler, and describe the first
 *  LEFT_TOLD of them in `text`. */
int graph_say_left(struct weir_graph *g, char *text, size_t size);
/** Stop everything that graph_start has started, including the last `n_started` stages of
 *  graph->order. */
void graph_abort(struct weir_graph *g, int n_started);

/** Report handler calls that are stuck. Called by the control thread in each round. */
void graph_watch(struct weir_graph *g, int64_t now_ns, struct journal *journal);
/** Fill in the last stuck call of `st` whose stack was looked for, if any. Any thread. */
void graph_stuck_view(struct weir_graph *g, const struct weir_stage *st, struct weir_stuck_view *v);
/** Let `pool` grow by one thread if its policy, its bounds and the thread budget allow. Returns the
 *  pool's target. */
int graph_grow_around(struct weir_graph *g, struct pool *pool);

/** Allocate the locals of the stages that thread `t` runs or, if `all` is set, of every stage.
 *  Called before the thread registers. Returns 0, or WEIR_ENOMEM, after which the caller must call
 *  graph_books_free. */
int graph_books_make(struct thread *t, bool all);
void graph_books_free(struct thread *t);
/** Add the locals of `t` to the lists of their stages. threads_lock is held. */
void graph_books_list(struct weir_graph *g, struct thread *t) WEIR_REQUIRES(&g->threads_lock);
/** Add the counters of `t` to the common books and remove its locals from the lists. threads_lock
 *  is held. */
void graph_books_fold(struct weir_graph *g, struct thread *t) WEIR_REQUIRES(&g->threads_lock);
/** Return the placement of a stage, as in struct weir_stage_view. */
const char *graph_placement(const struct weir_stage *st);

/** Free the counters of exited threads. */
void graph_books_forget(struct gone *gone);
/** Identify the thread of the local `l`, which is alive. */
struct thread_id graph_books_id(const struct local *l);
bool graph_books_same(const struct thread_id *a, const struct thread_id *b);
/** Return the change number of stage `id`, which increases when one of its counters, or a total of
 *  its admission, has changed (book_changed). threads_lock is held. */
uint64_t graph_stage_changes(const struct weir_graph *g, int id) WEIR_REQUIRES(&g->threads_lock);

/** Add up the counters of stage `id` over all threads, including those that have exited.
 *  times[n_classes] and links[n_outlets] may be NULL. Adds the times that the handle calls in
 *  progress have taken so far to *running_ns, and raises *longest_ns to the longest of them; both
 *  may be NULL. Takes threads_lock. */
void graph_sum(struct weir_graph *g, int id, struct book *book, struct weir_class_view *times,
    uint64_t *links, int64_t *running_ns, int64_t *longest_ns);

/** Return the sums of stage `id`. The counters are read again only if the stage's number in
 *  graph->changes has changed since the last reading, or a call was in progress then. Called by the
 *  control thread. */
const struct stage_sums *graph_sums(struct weir_graph *g, int id);

/** Return the number of events of stage `id` that are neither completed, shed nor failed. The
 *  number is exact only if no event moves during the call. */
int64_t graph_in_flight(struct weir_graph *g, int id);

/** Return a number that grows whenever an event comes to a stage, begins to be handled there, or leaves
 *  it. */
uint64_t graph_steps(struct weir_graph *g);

/** Return the number of events that `st` holds. */
int64_t graph_held_at(struct weir_graph *g, const struct weir_stage *st);

/** Whether nothing is in flight except, if `rest` is set, held events and events that await such ones. An
 *  event on its way to a callback (weir_stage.arriving) does not count as held. All counts of ended events
 *  are read before any count of offered events. So an event that moves during the reading can only make the
 *  sum of offered events larger (Mattern 1987, four counters). This holds in whatever order the stages
 *  are read, and even if the graph has loops. It does not hold of an event that is let go and held again
 *  meanwhile, so with `rest` the result is only a hint: then ops->stop may be called too early.
 *
 *  A child is counted as ended before its parent is counted as running again. So if events await
 *  others, no thread may have moved events (weir_event_finish_run) during the reading. */
bool graph_is_quiet(struct weir_graph *g, bool rest);

#endif
