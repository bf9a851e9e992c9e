/* SPDX-License-Identifier: MIT */
/*
 * What the laws remember between steps: a few numbers per stage and class, so that each is looked at
 * in constant time at the step that could break it. See sim.h, enum sim_law, for what they say.
 *
 *   laws.c        every step: books, queues, pools; how a breach is told
 *   laws_door.c   what a door may do: waits (I4), midway (I8), calm (I9)
 *   laws_load.c   who gets what, and when overload ends: guarantees (I6), NORMAL again (I10)
 *   laws_pool.c   the number of threads over time: I11, I12
 *   laws_state.c  what is given back, and what is read: I14, I15
 *   laws_setting.c  what the configuration says of the load, for laws that depend on it
 */
#ifndef WEIR_SIM_LAWS_H
#define WEIR_SIM_LAWS_H

#include "sim.h"

/* Totals of a class at the start of a slot. */
struct slot_then {
	uint64_t wanted, handled;
};

struct stage_laws {
	/* I4 */
	double late;        /* events that waited too long, beyond one in a hundred */
	int64_t excused_ns; /* what was queued before was let in by the costs of another time */
	/* I6, I10: slots of SLOT_NS */
	int64_t slot_ns;
	struct slot_then then[WEIR_CLASSES_MAX];
	double owed_ns[WEIR_CLASSES_MAX]; /* of its guarantee, to the class */
	int64_t calm_ns;                  /* the load is small since; 0: it is not */
	int64_t low_ns;                   /* first moment since with hardly a wait; 0: none yet */
	int64_t drain_ns;                 /* until then the queue may stand */
	bool normal;                      /* was NORMAL since */
	/* I11, I12 */
	int64_t turned_ns; /* last reversal; 0: none */
	int64_t window_ns; /* these are of then, and one window before */
	int64_t cpu_then[2], computing_then[2], busy_then[2];
	/* I14 */
	uint32_t upstream;  /* stages from which a way leads here, one bit each */
	int64_t missing_ns; /* fewer threads than wanted since; 0: there are enough */
	/* I15 */
	uint64_t seen[WEIR_CLASSES_MAX]; /* sum of the books at the last tick */
};

/* What the configuration says, as long as nothing changes in it. */
struct setting {
	bool open;          /* clients do not react to the server, arrivals do not come in bursts */
	int64_t changed_ns; /* the last change of a rate or a service */
	int64_t next_ns;    /* of the next one */
	double demand[SIM_STAGES_MAX]; /* mean number of threads that what is offered keeps busy */
	double cpu;                    /* mean number of cores, likewise */
	double per_s[SIM_STAGES_MAX];
	bool sole_way[WEIR_CLASSES_MAX];  /* all of the class go one way */
	bool anonymous[WEIR_CLASSES_MAX]; /* each request of the class is a user of its own */
	double calm_ratio;                /* I9: share that may be refused; below 0: no calm load */
	uint64_t sent, refused;           /* I9 */
};

#endif
