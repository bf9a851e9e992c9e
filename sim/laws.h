/* SPDX-License-Identifier: MIT */
/*
 * State of the law checks between steps: a few numbers per stage and class, so that each law is
 * checked in constant time at the step that could break it. enum sim_law in sim.h describes the
 * laws.
 *
 *   laws.c          every step: counters, queues, pools; reports of breaches
 *   laws_admit.c    promises of admission: waits (I4), deadlines (I7), midway (I8), calm (I9)
 *   laws_load.c     shares of classes (guarantees, I6) and the end of overload (NORMAL again, I10)
 *   laws_pool.c     the number of threads over time: I11, I12
 *   laws_serial.c   serial keys (S4)
 *   laws_state.c    returned credits and threads (I14), reads of shared state (I15)
 *   laws_setting.c  the configured load, for laws that depend on it
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
	double late; /* running sum of late events, see laws_admit.c */
	/* events queued before this time are not checked: they were admitted when the policy did
	 * not know the current costs */
	int64_t excused_ns;
	/* I6, I10: slots of SLOT_NS */
	int64_t slot_ns;
	struct slot_then then[WEIR_CLASSES_MAX];
	double owed_ns[WEIR_CLASSES_MAX]; /* part of the guarantee still owed to the class */
	int64_t calm_ns;                  /* when the load became small; 0 if it is not small */
	/* first time since calm_ns with almost no wait; 0 if none yet */
	int64_t low_ns;
	int64_t drain_ns; /* time until which the queue may be long */
	bool normal;      /* the policy has reported NORMAL since calm_ns */
	/* I11, I12 */
	int64_t turned_ns; /* time of the last reversal; 0 if none */
	/* start of the window; in the arrays below, [0] is the value at that time, and [1] the
	 * value at the start of the previous window */
	int64_t window_ns;
	int64_t cpu_then[2], computing_then[2], busy_then[2];
	/* I14 */
	/* by class: bit mask of the stages from which a path leads here */
	uint32_t upstream[WEIR_CLASSES_MAX];
	uint32_t most_back[WEIR_CLASSES_MAX]; /* the most events that had yielded, at once */
	int64_t missing_ns; /* time since which threads are missing; 0 if there are enough */
	/* I15 */
	uint64_t seen[WEIR_CLASSES_MAX]; /* sum of the counters at the last tick */
};

/* S4: a value of the field of a serial stage. */
struct key_laws {
	/* the last turn taken by events from serial stages of the field, and by others */
	uint64_t from_serial, from_others;
};

/* S4: a value of a field in a group. */
struct key_use {
	uint32_t n, worker; /* events in handlers, and the core that handles them */
};

/* S4: a value of the field of a partitioned stage. */
struct part_laws {
	struct key_use use;
	int64_t queued_ns[WEIR_CLASSES_MAX]; /* of the last event taken */
};

/* Properties of the current setting: rates, services and faults. */
struct setting {
	/* clients do not react to the server, and arrivals are not bursty */
	bool open;
	int64_t changed_ns;            /* time of the last change of a rate or a service */
	int64_t next_ns;               /* time of the next such change */
	double demand[SIM_STAGES_MAX]; /* mean number of threads that the offered load keeps busy */
	double cpu;                    /* mean number of cores that the load keeps busy */
	double per_s[SIM_STAGES_MAX];
	bool sole_way[WEIR_CLASSES_MAX]; /* all events of the class take the same route */
	/* the class has many users (MANY_USERS), or each of its requests has its own user */
	bool anonymous[WEIR_CLASSES_MAX];
	/* I9: share of requests that may be refused; negative if the load is not calm */
	double calm_ratio;
	uint64_t sent, refused; /* I9: requests sent and refused so far */
};

#endif
