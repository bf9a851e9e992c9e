/* SPDX-License-Identifier: MIT */
/*
 * Where events go, learned from counters: what is on its way to a stage, how long it will be on its
 * way, and which door upstream may decide for the stage.
 *
 * For each class the graph is taken for a Markov chain: p(link) is the part of the events handled at
 * a stage that it sent down the link, over the last few hundred. From that, upstream by upstream:
 *
 *   visits(s, f)   = sum over links s -> u of p (1 if u is f, else visits(u, f))
 *   lead(s, f)     = mean time from entering the queue of s to entering that of f, of those who get there
 *   pipeline(f)    = sum over s of events at s, times visits(s, f), times the cost at f
 *   before(s, f)   = part of pipeline(f) from stages with a lead no longer than that of s: the rest of it
 *                    gets there later than what enters s now
 *   rest(s)        = mean time from entering the queue of s to the end
 *
 * pipeline is the P_s of overload.md 3.1, but nobody carries it: it is counted anew from the books at
 * each tick, so an event that dies on the way has nothing to give back and nothing drifts.
 *
 * A stage s is a gate of f for a class when nearly all of the class that enter s go on to f: then
 * who must be refused for the sake of f is refused at s, before s has worked for it (overload.md
 * 3.4). Where only some go there (misses of a cache), f decides at its own door: refusing all for
 * the sake of some would cost more than the work that is wasted.
 *
 * A route therefore is a class and the stage it enters by. Plain data, one owner, no locks.
 */
#ifndef WEIR_ADMISSION_ROUTE_H
#define WEIR_ADMISSION_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/spec.h>

/** A stage of the graph, as routes see it. */
struct route_stage {
	bool source; /* events begin there */
	bool queued; /* has a door that can ask: neither source nor inline */
	int front;   /* its number among those for whom doors upstream ask, -1: not one of them */
};

struct route_link {
	int from, to;
	bool loop; /* closes a cycle: not followed */
};

/** The graph; pointers stay the caller's and must outlive the route. */
struct route_shape {
	int n_stages, n_classes, n_links, n_fronts;
	const struct route_stage *stage;
	const struct route_link *link;
	const int *order; /* stages, upstream first but for loops */
};

/** What the books say of one stage now. Totals only grow. */
struct route_look {
	uint64_t
	    handled[WEIR_CLASSES_MAX]; /* events that handlers are done with (source: offered) */
	int64_t in_flight[WEIR_CLASSES_MAX]; /* waiting or in handlers; less than 0 counts as 0 */
	int64_t cost_ns[WEIR_CLASSES_MAX];   /* mean service time, 0: not known or nothing */
	int64_t wait_ns;                     /* that who enters now has before it, about */
	uint64_t offered[WEIR_CLASSES_MAX];  /* at its door, by whomever */
	int64_t stay_ns[WEIR_CLASSES_MAX];   /* from its door to leaving it; 0: wait and cost */
};

/** How often to learn. Between two times doors keep count of what they send; once in so long is enough for
 *  where events go, and costs little with a hundred threads. */
#define ROUTE_TICK_NS 50000000LL

struct route;

/** A route of `shape` that knows nothing yet: no gates, no pipelines. NULL: no memory. */
struct route *route_new(const struct route_shape *shape);
void route_free(struct route *r);

/**
 * Learn from look[n_stages] and from tried[n_links * WEIR_CLASSES_MAX], events that were offered down each link
 * so far, refused ones included. About n_links x n_fronts x n_classes steps of a few ns.
 */
void route_learn(struct route *r, const struct route_look *look, const uint64_t *tried);

/** Part of what enters `s` that goes on to front `f`, by class; 0 when not known. */
double route_visits(const struct route *r, int s, int f, int class_id);
/** Mean time from the door of `s` to that of front `f`, 0 when nobody goes there. */
int64_t route_lead_ns(const struct route *r, int s, int f, int class_id);
/** Work on its way to front `f` from all stages upstream. */
int64_t route_pipeline_ns(const struct route *r, int f);
/** Part of it, 0..1, that is there before what enters `s` now: from stages that are as near or nearer. */
double route_before(const struct route *r, int s, int f, int class_id);
/** Mean time from the door of `s` to the end of an event. */
int64_t route_rest_ns(const struct route *r, int s, int class_id);
/** Does the door of `s`, another stage, decide for front `f`? */
bool route_gates(const struct route *r, int s, int f, int class_id);
/** Has an event of the class that comes from stage `from` been decided on for front `f`? */
bool route_judged(const struct route *r, int from, int f, int class_id);

#endif
