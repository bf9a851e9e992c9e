/* SPDX-License-Identifier: MIT */
/* The table of batch policies, and the policy `static`, which never changes the cap. */
#include "control/batch.h"

#include <string.h>

static bool static_decide(
    void *state, const struct batch_view *v, int64_t now_ns, struct batch_decision *d)
{
	(void)state, (void)v, (void)now_ns, (void)d;
	return false;
}

const struct batch_policy batch_static = {
    .name = "static",
    .help = "keep cohort.max as set",
    .decide = static_decide,
};

static const struct batch_policy *const policies[] = {&batch_static, &batch_seda, &batch_weir};

#define N_POLICIES (int)(sizeof(policies) / sizeof(policies[0]))

const struct batch_policy *batch_at(int i)
{
	return i >= 0 && i < N_POLICIES ? policies[i] : NULL;
}

const struct batch_policy *batch_find(const char *name)
{
	for (int i = 0; i < N_POLICIES; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}
