/* SPDX-License-Identifier: MIT */
/* The configurations of torture_modes: some groups are core groups. */
#include "torture/modes_stage.h"

const bool modes_cells = false;
const bool modes_sleeps = false;
const bool modes_splits = false;
