/* SPDX-License-Identifier: MIT */
/*
 * The interface of resize policies, which choose how many handler threads a pool should have.
 *
 * A policy is a pure function of (state, view, now): it reads no clock and touches no thread, so it
 * runs unchanged in virtual time. The control thread calls it every CONTROL_TICK_NS and carries out
 * its decision, clamped to the bounds and the thread budget of the process. The journal records the
 * inputs, the rule and the bound that limited the decision.
 *
 * Totals are not read atomically: a batch that ends during the reading may be counted twice, and
 * only once in the next reading. So totals may decrease slightly, and policies treat differences as
 * signed numbers.
 */
#ifndef WEIR_CONTROL_RESIZE_H
#define WEIR_CONTROL_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Input of a policy: the state of one pool at one moment. */
struct resize_view {
	int live;              /* existing threads */
	int target, min, max;  /* current target, and its bounds */
	int useful;            /* threads that can work at once: 1 for an exclusive stage */
	int budget_left;       /* threads that the process may still add */
	int cores;             /* cores available to the process */
	int busy;              /* threads in a handler now */
	uint32_t queue_length; /* events waiting for a thread, summed over the pool's stages */
	uint32_t queue_limit;
	uint64_t offered_total;   /* events offered since startup, including refused ones */
	uint64_t completed_total; /* events that succeeded or were emitted */
	uint64_t items;           /* events that handlers have finished */
	uint64_t running;         /* events in handlers or leaving them */
	/** Sums over all threads, including those that have exited. */
	uint64_t busy_ns_total; /* time in handlers, including calls in progress */
	uint64_t cpu_ns_total;  /* time on a core, inside and outside handlers */
	uint64_t runq_ns_total; /* time ready to run but waiting for a core */
	bool runq_known;        /* false if runq_ns_total cannot be read and so is 0 */
	/* CPU use of the whole process in the last tick, 0..1; 1 means that all its cores are
	 * busy */
	double cpu_ratio;
	bool paused; /* all stages are paused by an operator; no policy is called */
	bool fixed;  /* the number is given; likewise */
	/* the paused stages of the pool, which the sums above exclude: bit i % 64 stands for stage
	 * i of the pool */
	uint64_t paused_set;
};

struct resize_decision {
	int target;    /* requested by the policy, not clamped */
	char rule[96]; /* reason, as readable text */
};

/** Maximum size of a policy's state in bytes. */
#define RESIZE_STATE_MAX 384

struct resize_policy {
	const char *name;
	const char *help;
	/** Returns true and fills in `d` to request another target. `state` is initially zero. */
	bool (*decide)(
	    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d);
};

extern const struct resize_policy resize_static;
extern const struct resize_policy resize_seda;
extern const struct resize_policy resize_weir;

/** Return the policy called `name`, or policy number `i`. NULL if there is no such policy. */
const struct resize_policy *resize_find(const char *name);
const struct resize_policy *resize_at(int i);

#endif
