/* SPDX-License-Identifier: MIT */
/*
 * The graph inside: stages, pools, threads, and what controls them.
 *
 *   BUILT --start--> RUNNING --drain--> DRAINING --> DRAINED
 *
 * Who writes: the main thread builds, starts and drains; `lock` orders changes of knobs; threads
 * enter and leave under `threads_lock`; control/ writes the journal under the journal's own lock.
 */
#ifndef WEIR_FLOW_GRAPH_H
#define WEIR_FLOW_GRAPH_H

#include <weir/graph.h>

#include "base/lock.h"
#include "control/acts.h"
#include "flow/stage.h"

enum graph_phase { GRAPH_BUILT, GRAPH_RUNNING, GRAPH_DRAINING, GRAPH_DRAINED };

/** Sums of threads that have gone, per stage. Under threads_lock. */
struct gone {
	struct book book;
	struct time_book times[WEIR_CLASSES_MAX];
	book_counter *link_events; /* per outlet */
	book_counter *link_tried;  /* outlet * WEIR_CLASSES_MAX + class */
};

struct class_match {
	const struct weir_field *field;
	char *arg;     /* owned */
	char *pattern; /* owned, without a trailing '*' */
	size_t n;      /* bytes of pattern */
	bool prefix;
};

struct graph_class {
	const char *name;
	int n_match;
	struct class_match *match;
};

struct control;
struct journal;
struct override;
struct meter;
struct graph_route;
struct slowest;
struct inheritance;

struct weir_graph {
	struct weir_spec *spec;
	uint64_t serial; /* in this process, from 1 */
	int n_stages, n_pools, n_classes;
	struct weir_stage **stages; /* by id */
	int *order;                 /* ids, upstream first */
	struct pool **pools;
	struct graph_class *classes;
	/* by class, constant after build; a graph without classes has one: 0 and 0 */
	int class_priority[WEIR_CLASSES_MAX]; /* 0 is the highest; equal ones are served alike */
	double class_guarantee[WEIR_CLASSES_MAX]; /* share of the service that is its own, 0..0.5 */
	struct lock lock;                         /* effective values in stage specs */
	struct override *overrides WEIR_GUARDED_BY(lock);
	bool steerable WEIR_GUARDED_BY(lock); /* running: stages may be paused */
	bool succeeded WEIR_GUARDED_BY(lock); /* another graph follows: acts are that one's */
	_Atomic int64_t expires_ns;           /* the earliest end of an override, INT64_MAX: none */
	struct acts acts;
	struct lock threads_lock;
	struct thread *threads WEIR_GUARDED_BY(threads_lock);
	struct gone *gone WEIR_GUARDED_BY(threads_lock);
	uint64_t gone_moves WEIR_GUARDED_BY(threads_lock); /* and one for each that went */
	struct thread *drain_thread;                       /* made at start, used by drain */
	struct control *control;
	_Atomic int64_t ticked_ns; /* of the last round that was finished; control's */
	struct meter **meters;   /* by stage id, NULL for policies that learn nothing; control's */
	struct slowest *slowest; /* own lock */
	/* Totals of the graph before, set before the start; totals left to the graph that follows. Shared with it, own lock. */
	struct inheritance *inherited, *bequest;
	struct graph_route *route; /* NULL when no door has anybody to ask ahead for; control's */
	atomic_int phase;
	atomic_int overload_mode; /* enum weir_admission_mode; stored in every sink's mode_cap */
	atomic_bool hurry;
	_Atomic int64_t started_ns; /* 0 before; the admin endpoint looks earlier */
	/* drain waits here: pulsed at the end of batches while DRAINING */
	pthread_mutex_t drain_mutex;
	pthread_cond_t drain_cond;
};

/** Bind classes of the spec to the fields of event type `type` (NULL: no source has one). 0 or a
 *  WEIR_E code with `errs` filled. */
int graph_classes_bind(
    struct weir_graph *g, const struct weir_event_type *type, struct weir_errs *errs);
void graph_classes_free(struct weir_graph *g);

/** Give the sinks the mode of the spec, at the end of the build. */
void graph_overload_init(struct weir_graph *g);

/** Make the control thread's view of the pools (not yet running). 0 or WEIR_ENOMEM. */
int graph_control_new(struct weir_graph *g);
/** Free what graph_control_new made; a control thread must have been stopped. */
void graph_control_free(struct weir_graph *g);

/** Start it; `old` (may be NULL) is the running graph that it follows. As weir_graph_start. */
int graph_start(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs);

/** Make what doors need to ask ahead; nothing when no stage has a front policy behind another stage's
 *  queue. 0 or WEIR_ENOMEM. */
int graph_route_new(struct weir_graph *g);
void graph_route_free(struct weir_graph *g);
/** Learn where events go and tell the doors, every ROUTE_TICK_NS. The control thread, each tick, behind the
 *  meters. */
void graph_route_tick(struct weir_graph *g, int64_t now_ns);

/** Make the batcher of a stage whose spec asks for one. 0 or WEIR_ENOMEM. */
int graph_batch_new(struct weir_stage *st);
void graph_batch_free(struct weir_stage *st);
/** cohort.max of `st` is `max` now. Any thread. */
void graph_batch_bound(struct weir_stage *st, int max);
/** Let the batchers look at their stages. The control thread, each tick. */
void graph_batch(struct weir_graph *g, int64_t now_ns, struct journal *journal);

/** Move the stages that may degrade, by their pressure. The control thread, each tick; a step is taken when it is due. */
void graph_degrade(struct weir_graph *g, int64_t now_ns);

/** Report handler calls that are stuck. The control thread, each tick. */
void graph_watch(struct weir_graph *g, int64_t now_ns, struct journal *journal);
/** Let `pool` grow by one thread if its policy, bounds and the budget allow. Returns its target. */
int graph_grow_around(struct weir_graph *g, struct pool *pool);

/** Sum what all threads, live and gone, have counted at stage `id`. times[n_classes] and
 *  links[n_outlets] may be NULL; *running_ns (may be NULL) grows by the time that the handle calls
 * under way have run so far, summed; *longest_ns (may be NULL) is the longest of them. Takes
 * threads_lock. */
void graph_sum(struct weir_graph *g, int id, struct book *book, struct weir_class_view *times,
    uint64_t *links, int64_t *running_ns, int64_t *longest_ns);

/** Events of stage `id` that are neither completed, shed nor failed: exact when nothing moves. */
int64_t graph_in_flight(struct weir_graph *g, int id);

/** A batch has ended: let a waiting drain look. Cheap when there is none. */
static inline bool graph_draining(const struct weir_graph *g)
{
	return atomic_load_explicit(&g->phase, memory_order_relaxed) == GRAPH_DRAINING;
}
void graph_pulse(struct weir_graph *g);

#endif
