/* SPDX-License-Identifier: MIT */
/* What torture_modes does with operations: children, orphans, families. */
#ifndef WEIR_TESTS_TORTURE_MODES_OPS_H
#define WEIR_TESTS_TORTURE_MODES_OPS_H

#include "graph/graph.h"
#include "torture/modes_stage.h"

/* Value of probe.producer of events that stages have made. */
#define MADE 9

/* Give `*slot` some children, and await them or let it go otherwise, by the random number `r`. */
void ops_split(struct weir_stage *st, struct weir_event **slot, uint64_t r);
/* Emit a new event that has no parent. */
void ops_spawn(struct weir_stage *st, uint64_t r);
/* An event has ended with `status`. */
void ops_finished(struct probe *p, int status);
/* End a family to which some of the events belong, and begin another one. */
void ops_end_family(unsigned number);
/* Release the families. */
void ops_over(void);
/* Check that each event that the stages of `g` have made is counted as ended. */
void ops_check(struct weir_graph *g);
/* The number of events that stages have made so far. */
uint64_t ops_made(void);
/* Check that all of them have ended, and print how many there were. */
void ops_report(void);

#endif
