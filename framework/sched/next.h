/* SPDX-License-Identifier: MIT */
/*
 * The choice of the stage that a core of a core group visits next.
 *
 * Everything here is a pure function of its arguments, so that the server and `weir simulate` run
 * the same code. A visit is a sequence of batches of one stage. next_stage() asks after each batch,
 * in this order: is a stage urgent, has a stage starved, does the gate let the visit go on, and
 * then the policy.
 */
#ifndef WEIR_SCHED_NEXT_H
#define WEIR_SCHED_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum number of stages of a core group: one bit each in a 64-bit word. */
#define NEXT_STAGES_MAX 64

/** A stage as one core sees it. Fields of stages that are not ready are not read. */
struct next_stage {
	uint32_t length;    /* events that this core may take now */
	int64_t oldest_ns;  /* arrival of the oldest of them, CLOCK_MONOTONIC */
	int64_t service_ns; /* mean service time; 0 if unknown */
	int64_t rest_ns;    /* mean work from this stage to the end, itself included; 0 if unknown */
	double load;        /* offered work, in cores; used by `order` only */
};

/** What `order` computes from time to time. Positions follow the `visit` of the group. */
struct next_order {
	uint8_t rank[NEXT_STAGES_MAX]; /* stages by preference, the best first */
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

#endif
