/* SPDX-License-Identifier: MIT */
/* The stage type of torture_modes, which does with an event whatever a handler may do, and its
 * random configurations. */
#ifndef WEIR_TESTS_TORTURE_MODES_STAGE_H
#define WEIR_TESTS_TORTURE_MODES_STAGE_H

#include "fixture/graph/graph.h"

#define CLASSES    3
#define STAGES_MAX 6
#define HOPS_MAX   12
#define MINE_MAX   4
#define READY      0x600d600dU

extern atomic_ullong faults, deaths, refusals;
extern atomic_bool may_die, may_refuse;

void fault(const char *what, uint64_t a, uint64_t b);

/* Nearly all stages are in core groups, and only some hold events, so that most events pass through
 * cells (torture_cells.c); else only some are (modes_pools.c). */
extern const bool modes_cells;

/* Handlers sleep now and then (torture_blocked.c). */
extern const bool modes_sleeps;
extern atomic_ullong sleeps;

/* Most of the work of handlers is to have children (torture_ops.c). */
extern const bool modes_splits;

/* ---- the type ---- */

extern const struct weir_stage_ops mix_ops;

/* ---- random configurations ---- */

extern const char *const stage_names[STAGES_MAX];

unsigned below(unsigned *rnd, unsigned n);
const char *pick(unsigned *rnd, const char *const *of);

/* Build a graph. If the check refuses a random configuration, another one is tried. */
struct weir_graph *random_graph(unsigned *rnd);

#endif
