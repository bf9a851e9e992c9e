/* SPDX-License-Identifier: MIT */
/* The table of scheduling policies of pools. Each policy has its own file and a row here. */
#include "sched/policy.h"

#include <string.h>

static const struct sched_policy *const policies[] = {&sched_shared};

#define N_POLICIES (int)(sizeof(policies) / sizeof(policies[0]))

const struct sched_policy *sched_policy_at(int i)
{
	return i >= 0 && i < N_POLICIES ? policies[i] : NULL;
}

const struct sched_policy *sched_policy_find(const char *name)
{
	for (int i = 0; i < N_POLICIES; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}
