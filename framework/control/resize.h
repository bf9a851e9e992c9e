/* SPDX-License-Identifier: MIT */
/*
 * The contract of resize policies: how many handler threads should a pool have?
 *
 * A policy is a pure function of (state, view, now): it reads no clock and touches no thread, so it
 * runs unchanged in virtual time. The control thread calls it every CONTROL_TICK_NS and carries out
 * what it wants, clamped to the bounds and the thread budget of the process; the journal keeps
 * inputs, rule and the limit it met.
 *
 * Totals only grow, but for reading errors: a batch that ends while it is read may count twice, and
 * not the next time. Policies take differences as signed numbers.
 */
#ifndef WEIR_CONTROL_RESIZE_H
#define WEIR_CONTROL_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a policy may look at: one pool at one moment. */
struct resize_view {
	int live;              /* threads there are */
	int target, min, max;  /* threads wanted so far; the bounds */
	int useful;            /* threads that can work at once: 1 for an exclusive stage */
	int budget_left;       /* threads that the process may have beyond those of all pools */
	int cores;             /* that the process may use */
	int busy;              /* threads in a handler at this moment */
	uint32_t queue_length; /* events waiting, summed over the pool's stages */
	uint32_t queue_limit;
	uint64_t offered_total;   /* events at the doors, since start; what was refused counts */
	uint64_t completed_total; /* those that ended well or were sent on */
	uint64_t items;           /* events that handlers were done with */
	uint64_t running; /* events in handlers and on their way out: changes as they move */
	/** Sums over threads, those that have gone included. */
	uint64_t busy_ns_total; /* in handlers, calls under way included */
	uint64_t cpu_ns_total;  /* on a core, handler or not */
	uint64_t runq_ns_total; /* ready, waiting for a core */
	bool runq_known;        /* false: runq_ns_total is 0 for want of knowledge */
	double cpu_ratio;       /* CPU the whole process used in the last tick, 0..1 of its cores */
	bool paused;            /* one of its stages, by an operator: nothing to decide */
};

struct resize_decision {
	int target;    /* what the policy wants, not clamped */
	char rule[96]; /* why, for people */
};

/** Largest state of a policy in bytes. */
#define RESIZE_STATE_MAX 384

struct resize_policy {
	const char *name;
	const char *help;
	/** `state` is zero at first. Returns true and fills `d` when another target is wanted. */
	bool (*decide)(
	    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d);
};

extern const struct resize_policy resize_static;
extern const struct resize_policy resize_seda;
extern const struct resize_policy resize_weir;

/** The policy called `name`, NULL when there is none; number `i`, NULL past the end. */
const struct resize_policy *resize_find(const char *name);
const struct resize_policy *resize_at(int i);

#endif
