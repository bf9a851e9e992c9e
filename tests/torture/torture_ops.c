/* SPDX-License-Identifier: MIT */
/*
 * torture_ops [producers=3] [seconds=2] [seed=1] [operations=100000]
 *
 * torture_modes (torture_modes.c has its main, and says what it checks) with many operations: stages in
 * pools, groups and core groups, inline, exclusive and partitioned, which are replaced and drained, have
 * children at every eighth hop and await them. Half of the parents are in families that end now and then
 * and whose memory is bounded. It goes on until that many children have been made.
 */
#include "torture/modes_stage.h"

const bool modes_cells = false;
const bool modes_sleeps = false;
const bool modes_splits = true;
