/* SPDX-License-Identifier: MIT */
/*
 * torture_blocked [producers=3] [seconds=1] [seed=1]
 *
 * torture_cells with handlers that sleep now and then for 6 to 20 ms, so that spare threads stand in for
 * cores: in groups of all schedules and modes, while stages are paused, knobs are set, threads end in
 * handlers, and graphs are replaced and drained.
 */
#include <sched.h>

#include "torture/modes_stage.h"

#define CPUS 4

/* In place of that of libc: the process may use four CPUs, so that groups of several sizes exist on
 * a small machine. A thread that is bound to a CPU that does not exist runs on any. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(size, set);
	for (int i = 0; i < CPUS; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

const bool modes_cells = true;
const bool modes_sleeps = true;
