/* SPDX-License-Identifier: MIT */
/*
 * torture_cells [producers=3] [seconds=4] [seed=1]
 *
 * torture_modes (torture_modes.c has its main, and says what it checks) with core groups: nearly all
 * stages are in one of two, with random schedules, gates, cores and orders, and most events that
 * stages send to each other wait in cells. Handlers end their threads, which leaves the cells of a
 * core to others; operators pause stages whose cells are full, and change limits, lingers, schedules,
 * gates and numbers of cores; graphs are replaced and drained, with and without time. In the end no
 * cell has an event.
 */
#include "torture/modes_stage.h"

const bool modes_cells = true;
const bool modes_sleeps = false;
const bool modes_splits = false;
