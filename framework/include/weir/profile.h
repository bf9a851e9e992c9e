/* SPDX-License-Identifier: MIT */
/*
 * The profile of a graph: what each thread has done at each stage, and what it has sent where
 * (Larus and Parkes, Using Cohort Scheduling to Enhance Server Performance, USENIX 2002, figure 4).
 * Any thread, between build and free.
 *
 * All counts are totals since the graph was built. The profile of a window of time is the
 * difference of two profiles of the same graph; weir_profile_stage says which laws hold.
 */
#ifndef WEIR_PROFILE_H
#define WEIR_PROFILE_H

#include <stdint.h>

#include <weir/annotate.h>
#include <weir/metric.h>

WEIR_C_BEGIN

struct weir_graph;

enum weir_profile_on {
	WEIR_PROFILE_CORE,   /* a core of a core group */
	WEIR_PROFILE_THREAD, /* a thread of a pool */
	WEIR_PROFILE_IO,     /* a thread with an event loop, of a source or of another stage */
	/* all others together: threads attached by a program, the thread of the drain, and threads
	 * for which there was no memory to count */
	WEIR_PROFILE_OTHERS,
};

/** How many events a thread has sent by an outlet of a stage. */
struct weir_profile_arc {
	uint64_t sent;    /* admitted by the linked stage */
	uint64_t offered; /* to the linked stage, refused ones included */
};

/** What one thread has done at a stage. A thread that replaces another one, or that has the number
 *  of one which its pool has ended, continues the counts of that thread. */
struct weir_profile_row {
	enum weir_profile_on on;
	const char *owner; /* name of the group, of the pool or of the stage of the loop; else "" */
	int number;        /* of the core, thread or loop; -1 for the others */
	/* `offered`: events that it has offered to the stage or, at a source, that it has created;
	 * `refused`: of these, not admitted */
	uint64_t offered, refused;
	/* Events that it has begun to handle: for the first time, and again after they were put
	 * back. An event of a source is started when it is created. */
	uint64_t started, restarted;
	uint64_t put_back; /* to be handled again (weir_requeue) */
	/* ended after they were admitted or put back, and before they were handled: their deadline
	 * had passed, a policy shed them, or the server was stopping */
	uint64_t dropped;
	/* as in weir_class_view, of all classes and reasons */
	uint64_t completed, failed, shed, spawned, departed;
	uint64_t busy_ns, batches;    /* time in calls of the handler that have ended; calls */
	uint64_t waiting;             /* in the cell of the core now; 0 for other threads */
	struct weir_hist wait;        /* waits of the events started and restarted */
	uint64_t again_ns;            /* of these, the sum of the waits of restarted events */
	struct weir_profile_arc *arc; /* by outlet; children count as other events do */
};

struct weir_profile_outlet {
	const char *name;
	const char *to; /* name of the linked stage; NULL if unlinked */
};

/**
 * The rows of a stage: those of its own threads, then those of others that sent to it or ran it.
 *
 * Let a word stand for the sum over the rows. At any time
 *
 *   started + restarted + dropped + refused <= offered + put_back
 *   completed + failed + shed + departed <= offered + spawned
 *   the sum of `sent` over all arcs that lead here + refused <= offered
 *
 * As soon as no event moves, the two sides of the first law differ by `waiting`, and those of the
 * second by `waiting` + `running` + `held` + `awaiting`. Then also started + restarted is the number
 * of waits, the sum of `sent` over all arcs that leave here is at most completed + departed, and the
 * sum of `offered` over all arcs that lead here is `offered`, unless a program has offered events
 * from outside. Events that the handler of a stage makes count in `spawned`, not in `offered`, and
 * in `departed` as soon as another stage has admitted them; they are never started there. The sums
 * are the totals of the stage in a view (weir/view.h), unless the view also counts an earlier graph.
 */
struct weir_profile_stage {
	const char *name;
	const char *group;     /* name of its group or pool; "" if it has none */
	const char *placement; /* as in weir_stage_view */
	uint64_t waiting;      /* events in its queue and cells now */
	uint64_t running, held;
	uint64_t awaiting; /* events that wait for their children (weir/op.h) */
	int n_rows, n_outlets;
	struct weir_profile_row *row;
	struct weir_profile_outlet *outlet;
	struct weir_profile_arc *arcs; /* owned: the arcs of all rows */
};

struct weir_profile {
	const char *name;
	int64_t now_ns, wall_ns;
	int64_t since_ns,
	    since_wall_ns; /* when the graph was built: the totals count from then on */
	int n_stages;
	struct weir_profile_stage *stage;
};

/** Take a profile. Returns 0 or WEIR_ENOMEM. Free it with weir_graph_profile_free; its names live as
 *  long as the graph. Costs about as much as a view, and keeps threads from starting and exiting
 *  meanwhile. */
WEIR_API int weir_graph_profile(const struct weir_graph *graph, struct weir_profile **profile);
WEIR_API void weir_graph_profile_free(struct weir_profile *profile);

WEIR_C_END

#endif
