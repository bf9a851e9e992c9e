/* SPDX-License-Identifier: MIT */
/* The table of admission policies. Each policy has a file in this folder and a row here. */
#include "admission/admission.h"

#include <string.h>

static const struct admission_policy *const policies[] = {&admission_none, &admission_threshold,
    &admission_rate, &admission_codel, &admission_gradient2, &admission_dagor, &admission_seda_rt,
    &admission_weir};

#define N_POLICIES (int)(sizeof(policies) / sizeof(policies[0]))

const struct admission_policy *admission_at(int i)
{
	return i >= 0 && i < N_POLICIES ? policies[i] : NULL;
}

const struct admission_policy *admission_find(const char *name)
{
	for (int i = 0; i < N_POLICIES; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}
