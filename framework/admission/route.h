/* SPDX-License-Identifier: MIT */
/*
 * Learns from counters where events go. For a stage, this yields the work on its way to it, the
 * time until that work arrives, and the upstream stages that may decide on admission for it.
 *
 * For each class the graph is treated as a Markov chain: p(link) is the fraction of a stage's last
 * few hundred events that it sent down the link. The following are computed from p, stage by stage
 * upstream:
 *
 *   visits(s, f)   = sum over links s -> u of p (1 if u is f, else visits(u, f)); it exceeds 1 if
 *                    stages on the way split events into several (links of children)
 *   lead(s, f)     = mean time from entering the queue of s to entering that of f, for events
 *                    that reach f
 *   pipeline(f)    = sum over s of events at s, times visits(s, f), times the cost at f
 *   before(s, f)   = part of pipeline(f) that arrives before events that enter s now: an event at u
 *                    that stays there for t arrives between lead(u, f) - t and lead(u, f)
 *   rest(s)        = mean time from entering the queue of s to the finish
 *
 * A "front" is a stage with a policy that decides upstream. pipeline is P in docs/overload.md. It
 * is recomputed from the counters at each tick instead of being updated as events pass, so events
 * that are shed on the way need no correction, and no error accumulates.
 *
 * A stage s is an entry of f for a class if nearly all events of the class that enter s continue to
 * f. Events that f would refuse are then refused at s, before s has done any work for them
 * (docs/overload.md). If only some of the events continue to f (such as cache misses), f decides at
 * its own queue: s would also have to refuse events that never reach f, and that costs more than
 * the work wasted on events that f refuses.
 *
 * A route is identified by a class and an entry. A struct route has what was learned about all
 * routes of a graph. Not thread-safe.
 */
#ifndef WEIR_ADMISSION_ROUTE_H
#define WEIR_ADMISSION_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/spec.h>

/** A stage of the graph. */
struct route_stage {
	bool source; /* events enter the graph here */
	bool queued; /* has its own queue, so it is neither a source nor inline */
	int front;   /* index among the fronts, or -1 */
};

struct route_link {
	int from, to;
	bool loop; /* closes a cycle; ignored for visits, lead and rest */
	/* The events on the link were made by the stage that it leaves (weir/op.h), which waits for
	 * them. So an event may send several, they leave when its first handler call ends, and their
	 * time is part of its stay. May change between calls of route_learn. */
	bool children;
};

/** The graph. The caller owns the arrays, which must outlive the route. */
struct route_shape {
	int n_stages, n_classes, n_links, n_fronts;
	const struct route_stage *stage;
	const struct route_link *link;
	const int *order; /* stages in upstream-first order, loops ignored */
};

/** Current counters of one stage. Totals only grow. */
struct route_look {
	/* events that handlers have finished; for a source, events that it has offered */
	uint64_t handled[WEIR_CLASSES_MAX];
	int64_t in_flight[WEIR_CLASSES_MAX]; /* offered and not ended; negative counts as 0 */
	int64_t awaiting[WEIR_CLASSES_MAX];  /* of these, wait for children that have been sent */
	int64_t cost_ns[WEIR_CLASSES_MAX];   /* mean service time; 0 if unknown */
	int64_t behind_ns[WEIR_CLASSES_MAX]; /* part of cost_ns spent in inline stages downstream */
	/* expected wait of an event that enters now, approximate */
	int64_t wait_ns;
	uint64_t offered[WEIR_CLASSES_MAX]; /* events offered to the stage by any sender */
	/* mean time from admission to leaving; if 0, wait_ns + cost_ns - behind_ns is used
	 * instead */
	int64_t stay_ns[WEIR_CLASSES_MAX];
};

/** Interval between calls of route_learn, which reads the counters of all senders: short enough to
 *  follow where events go, long enough to be cheap with a hundred threads. */
#define ROUTE_TICK_NS 50000000LL

struct route;

/** Allocate a route that has not learned anything yet: it has no entries and no pipelines. Returns
 *  NULL if out of memory. */
struct route *route_new(const struct route_shape *shape);
void route_free(struct route *r);

/**
 * Learn from look[n_stages] and from tried[n_links * WEIR_CLASSES_MAX], the total number of events
 * offered down each link, including refused ones. Takes about n_classes x (n_stages + n_links x
 * fronts reached by them) steps of a few ns.
 */
void route_learn(struct route *r, const struct route_look *look, const uint64_t *tried);
/** Account for `ticks` without events: has the effect of that many calls of route_learn with
 *  unchanged counters. The last call of route_learn must have found no changed counter. */
void route_idle(struct route *r, int64_t ticks);

/** Whether there is a path from `s` to front `f`. Never changes. Without a path, the functions
 *  below return 0 or false. */
bool route_reaches(const struct route *r, int s, int f);

/** Return how many events enter front `f` for each of the class that enters `s`: without children,
 *  the fraction that continues to `f`; 0 if unknown. */
double route_visits(const struct route *r, int s, int f, int class_id);
/** Return the mean time from entering `s` to entering front `f`; 0 if too few events reach `f`. */
int64_t route_lead_ns(const struct route *r, int s, int f, int class_id);
/** Return the work on its way to front `f` from all upstream stages, in ns. */
int64_t route_pipeline_ns(const struct route *r, int f);
/** Return the fraction of route_pipeline_ns, 0..1, that reaches `f` before events that enter `s`
 *  now. It is a mean over about a second, because few events may be on their way at a tick. */
double route_before(const struct route *r, int s, int f, int class_id);
/** Return the mean time from entering `s` until the event finishes. */
int64_t route_rest_ns(const struct route *r, int s, int class_id);
/** Whether stage `s`, which is not `f` itself, decides on admission for front `f`. */
bool route_enters(const struct route *r, int s, int f, int class_id);
/** Whether events of the class that come from stage `from` have already been judged for front
 *  `f`. */
bool route_judged(const struct route *r, int from, int f, int class_id);

#endif
