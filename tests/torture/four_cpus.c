/* SPDX-License-Identifier: MIT */
/* Linked into a torture test of core groups: the process may use four CPUs, so that groups of
 * several sizes exist on a small machine. A thread that is bound to a CPU that does not exist runs
 * on any. */
#include <sched.h>

#define CPUS 4

/* In place of that of libc. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(size, set);
	for (int i = 0; i < CPUS; i++)
		CPU_SET_S(i, size, set);
	return 0;
}
