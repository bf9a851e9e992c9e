/* SPDX-License-Identifier: MIT */
/* The events and the stage type of torture_serial, whose handlers check the laws of serial keys. */
#ifndef WEIR_TESTS_TORTURE_SERIAL_STAGE_H
#define WEIR_TESTS_TORTURE_SERIAL_STAGE_H

#include "fixture/graph/graph.h"

#define CLASSES   3
#define STAGES    5
#define KEYS      24
#define PRODUCERS 8
#define CORES     4
#define SENDERS   (2 * CORES) /* cores, and their spares */

struct work {
	struct probe p;
	char user[8], other[8]; /* fields of the serial keys */
	int key[2];             /* their numbers */
	bool loose;     /* has lost its place: requeued, held or not always in serial stages */
	uint64_t stamp; /* place among the events of its key, given in stage 0 */
	/* sent to a serial stage by a core that may not own its key: place among what that core has
	 * sent over this outlet, 0 if it was not */
	uint64_t sent;
	int by, outlet;
};

extern atomic_ullong faults, deaths, handled;
extern atomic_bool may_die;
/* Whether handlers hold events, and how long they take, in loops. */
extern atomic_bool may_hold;
extern atomic_int spin;

extern const struct weir_event_type work_type;
extern const struct weir_stage_ops work_ops, work_hold_ops;

void fault(const char *what, uint64_t a, uint64_t b);

/* A new graph begins: no key has been seen, and nothing may be in a handler. */
void serial_begin(void);

#endif
