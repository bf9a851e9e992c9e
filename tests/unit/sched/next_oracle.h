/* SPDX-License-Identifier: MIT */
/*
 * What next_choose must answer, computed in the simplest way: with loops over all stages, an entry
 * for each event, and books of the visits. It shares no code with framework/sched.
 *
 * Laws checked at each choice:
 *   order  the choice is urgent if a stage is, else starved if a stage is, else the visit goes on
 *          if its gate is open, else the policy's own choice, recomputed
 *   S2     a starved stage waits for at most one batch of each other stage
 *   S3     a visit begins and ends as its gate says, to the batch
 *   S6     an urgent stage waits for at most one urgent visit of each other urgent stage; an urgent
 *          visit is not cut; when it has ended, the visit that it cut goes on
 */
#ifndef WEIR_TESTS_SCHED_NEXT_ORACLE_H
#define WEIR_TESTS_SCHED_NEXT_ORACLE_H

#include "sched/next.h"

struct oracle_visit {
	bool open, urgent;
	int stage;
	enum next_gate gate;
	int64_t began_ns, cut_ns; /* cut_ns: time of urgent visits meanwhile */
	uint64_t length;          /* events that waited when it began */
	uint64_t taken;
	int64_t bound; /* after an event yielded: the value of `taken` that ends the visit; or -1 */
	int64_t yielded_ns; /* then: the arrival of the event that yielded first */
};

struct oracle {
	const struct next_policy *policy;
	struct oracle_visit visit, urgent;
	int64_t ready_since_ns[NEXT_STAGES_MAX]; /* -1: not ready */
	uint64_t starve_met[NEXT_STAGES_MAX];    /* stages that went first since this one starved */
	uint64_t urgent_met[NEXT_STAGES_MAX];    /* stages that went first since it was urgent */

	/* The policies' own state. */
	int last, direction; /* wavefront; direction 0: none yet */
	uint64_t entry;      /* mg1 */
	uint8_t *color;      /* stages of the events of this core, by arrival */
	size_t n_color, max_color, first_color;
	int runs;  /* of one stage in `color` */
	bool full; /* more runs than the policy remembers: its choices are not checked */

	uint64_t choices, by_why[5], policy_checked;
	const char *broken; /* the law, or NULL */
};

void oracle_init(struct oracle *o, const struct next_policy *policy);
void oracle_fini(struct oracle *o);

/** Check a choice and set o->broken. Returns false if a law is broken. */
bool oracle_check(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c);

/* Tell the oracle what happened since the last choice. `from_cell` of the `n` events were in the
 * core's own cell. */
void oracle_took(struct oracle *o, int stage, uint32_t n, uint32_t from_cell);
void oracle_yielded(struct oracle *o, uint32_t ahead, int64_t at_ns);
void oracle_arrived(struct oracle *o, int stage, uint32_t k);

#endif
