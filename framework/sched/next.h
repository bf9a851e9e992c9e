/* SPDX-License-Identifier: MIT */
/*
 * The choice of the stage that a core of a core group visits next. In a core group, each core has
 * lists of its own for the events of the group's stages (event/cell.h). The key `visit` of the
 * group lists its stages in order.
 *
 * Everything here is a pure function of its arguments, so that the server and the simulator can run
 * the same code. A visit is a sequence of batches of one stage. next_choose() asks before each
 * batch, in this order: is a stage urgent, has a stage starved, does the gate let the visit go on,
 * and then the policy. The life of a core:
 *
 *   next_core_init
 *   loop:  next_arrived for each run that was appended to a stage of this core
 *          next_choose, then take at most choice.max events of choice.stage and run them
 *          next_took, then next_yielded if an event yielded (gate `cutoff`)
 *
 * An event yields if its handler puts it back into the queue of the stage (weir_slice_over). Then
 * the visit does the events that were before it in line at that moment, and ends: the yielded event
 * and those after it are left to the next visit, and keep their places. So long events share the
 * core, a slice a visit, and short ones are served in order (Harizopoulos, C-gated). A core's state
 * belongs to its thread. The view is what that thread sees; limits and order may be published by another
 * thread and stay unchanged during a call.
 *
 * Sources: J. Larus, M. Parkes, Using Cohort Scheduling to Enhance Server Performance, USENIX 2002,
 * 4.1 (wavefront, thresholds); M. Gordon, Stage Scheduling for CPU-Intensive Servers, 2010, 3.1
 * (the other policies and the polling model); S. Harizopoulos, A. Ailamaki, A Case for Staged
 * Database Systems, CIDR 2003 (gates).
 */
#ifndef WEIR_SCHED_NEXT_H
#define WEIR_SCHED_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum number of stages of a core group: one bit each in a 64-bit word. */
#define NEXT_STAGES_MAX 64

/** A stage as one core sees it. Of stages that are ready, next_choose reads the first two fields, of
 *  others none. In the view of next_policy.order the fields are for all cores together, and only the
 *  last three are read. */
struct next_stage {
	uint32_t length;    /* events that this core may take now; at least 1 if ready */
	int64_t oldest_ns;  /* arrival of the oldest of them, CLOCK_MONOTONIC */
	int64_t service_ns; /* mean service time; 0 if unknown */
	int64_t rest_ns; /* mean work from this stage to the end, itself included; 0 if unknown */
	double load;     /* offered work, as a share of the time of all cores of the group: 0..1 */
};

/** The result of next_policy.order. Stages are numbered in the order of the group's `visit`. */
struct next_order {
	uint8_t rank[NEXT_STAGES_MAX]; /* rank[i] of stage i, 0 is preferred (srpt, dbr) */
	uint8_t table[256];            /* cyclic table of visits (mg1) */
	int n_table;                   /* entries of `table` */
};

/** The group as one core sees it. Stage i is the i-th of the group's `visit`. */
struct next_view {
	int n;          /* number of stages, 1 to NEXT_STAGES_MAX */
	uint64_t ready; /* bit i: stage i has events for this core and may be visited */
	const struct next_stage *stage;
	const struct next_order *order; /* the latest; never NULL */
	int64_t now_ns;
};

/** What ends a visit. */
enum next_gate {
	/* no event of the stage is left, including those that arrived during the visit */
	NEXT_ALL,
	NEXT_ARRIVED, /* as many events are done as waited when the visit began */
	NEXT_EVENTS,  /* `gate_events` events are done */
	NEXT_TIME,    /* a batch has ended, `gate_ns` or more after the visit began */
	/* as NEXT_ALL, but an event that yielded after `gate_ns`, and those after it, are left to
	 * the next visit */
	NEXT_CUTOFF,
};

/** Thresholds of one stage; 0: none. */
struct next_urgent {
	uint32_t events; /* urgent with this many events */
	int64_t wait_ns; /* urgent when its oldest event has waited this long */
};

/** The settings of the operator, which may change while the server runs. */
struct next_limits {
	enum next_gate gate;
	uint32_t gate_events; /* NEXT_EVENTS: at least 1 */
	int64_t gate_ns;      /* NEXT_TIME, NEXT_CUTOFF */
	int64_t starve_ns;    /* a stage whose oldest event waited longer is next; 0: never */
	uint64_t urgent_set;  /* bit i: urgent[i] has a threshold */
	struct next_urgent urgent[NEXT_STAGES_MAX];
};

/** Maximum size of a policy's state in bytes. */
#define NEXT_STATE_MAX 3072

/** A policy. `state` belongs to one core, and is initially zero. */
struct next_policy {
	const char *name;
	const char *help;
	/** Fill in `out`, which is zero, from the stages of `v` (not from `ready`, `order`,
	 *  `now_ns`). Called by the control thread at the start and about every 100 ms. NULL if not
	 *  needed. */
	void (*order)(
	    const struct next_view *v, const struct next_limits *l, struct next_order *out);
	/** `k` events were appended to a stage of this core. NULL if not needed. */
	void (*arrived)(void *state, int stage, uint32_t k);
	/** `k` events of a stage for which `arrived` was called left this core, in a batch or
	 *  without one (next_gave): the oldest ones, unless classes or `order: newest` prefer
	 *  others. NULL if not needed. */
	void (*left)(void *state, int stage, uint32_t k);
	/** Returns a stage of v->ready, which has at least one bit. */
	int (*pick)(void *state, const struct next_view *v);
	/* `pick` compares fields of v->stage. It does not depend on them if one stage is ready. */
	bool looks;
};

extern const struct next_policy next_fifo, next_wavefront, next_srpt, next_dbr, next_mg1,
    next_color;

/** Return the policy called `name`, or policy number `i`. NULL if there is no such policy. */
const struct next_policy *next_policy_find(const char *name);
const struct next_policy *next_policy_at(int i);

/** Clear `out` and let the policy compute it. Called before the first next_choose, too. */
void next_order_make(const struct next_policy *policy, const struct next_view *v,
    const struct next_limits *l, struct next_order *out);

struct next_visit {
	bool open; /* the visit has not ended, but its gate may end it at the next choice */
	int stage;
	enum next_gate gate; /* in effect when it began; a change of the gate ends the visit */
	uint32_t left;       /* events until the gate ends it; UINT32_MAX: no such bound */
	int64_t until_ns;    /* it ends when the oldest event of its stage is from then or later */
	int64_t began_ns;    /* start, moved later by the time that urgent visits took meanwhile */
};

/** All state of one core. Read by tests and views; written by the functions below. */
struct next_core {
	const struct next_policy *policy;
	struct next_visit visit;  /* the present one, or the one that an urgent visit has cut */
	struct next_visit urgent; /* the urgent visit in progress */
	int last;                 /* stage of the last visit that was not urgent */
	int last_urgent;          /* stage of the last urgent visit */
	int64_t starve_check_ns;  /* before this time, starved stages are not searched for */
	bool simple;              /* see next_adapt */
	_Alignas(16) unsigned char state[NEXT_STATE_MAX]; /* of the policy */
};

/** Why a stage was chosen. */
enum next_why { NEXT_NONE, NEXT_URGENT, NEXT_STARVED, NEXT_STAY, NEXT_POLICY };

struct next_choice {
	int stage; /* -1: no stage is ready */
	enum next_why why;
	bool begins;  /* a visit begins; false: the present or the cut one goes on */
	uint32_t max; /* events that the gate allows in this batch; UINT32_MAX: no bound */
};

/** Begin the life of a core. */
void next_core_init(struct next_core *core, const struct next_policy *policy);

/** The limits have become those of `l`, or the life of the core has begun: note whether next_quick may
 *  choose. Without this call it does not. */
void next_adapt(struct next_core *core, const struct next_limits *l);

/** Choose the stage of the next batch. Cost: O(1) plus what the policy looks at, which are ready
 *  stages and entries of a table. */
struct next_choice next_choose(
    struct next_core *core, const struct next_limits *l, const struct next_view *v);

/** The batch that was chosen took `n` events of `stage`; next_arrived was called for `own` of them.
 *  n == 0 ends the visit. Called once after each next_choose that returned a stage, either when the
 *  batch is taken or when it has ended. */
void next_took(struct next_core *core, int stage, uint32_t n, uint32_t own);

/** Gate `cutoff`: an event of the present visit yielded at `at_ns`, which is its arrival from now on,
 *  and at most `ahead` events of its stage that this core may take are before it in line; other
 *  cores may take some of them. Called after next_took of its batch, for the first such event of the
 *  batch. */
void next_yielded(struct next_core *core, uint32_t ahead, int64_t at_ns);

/** `k` events were appended to a stage of this core. */
static inline void next_arrived(struct next_core *core, int stage, uint32_t k)
{
	if (core->policy->arrived)
		core->policy->arrived(core->state, stage, k);
}

/** `k` events of a stage, for which next_arrived was called, left this core without a batch, for
 *  example to a queue for other cores. */
static inline void next_gave(struct next_core *core, int stage, uint32_t k)
{
	if (core->policy->left)
		core->policy->left(core->state, stage, k);
}

/** The name of a reason, as in metrics: "urgent". */
const char *next_why_name(enum next_why why);

#endif
