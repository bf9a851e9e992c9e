/* SPDX-License-Identifier: MIT */
/*
 * torture_blocked [producers=3] [seconds=1] [seed=1]
 *
 * torture_cells with handlers that sleep now and then for 6 to 20 ms, so that spare threads stand in for
 * cores: in groups of all schedules and modes, while stages are paused, knobs are set, threads end in
 * handlers, and graphs are replaced and drained.
 */
#include "torture/modes_stage.h"

const bool modes_cells = true;
const bool modes_sleeps = true;
const bool modes_splits = false;
