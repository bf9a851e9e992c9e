/* SPDX-License-Identifier: MIT */
/* The table of resize policies, and the policy `static`, which never resizes a pool. */
#include "control/resize.h"

#include <string.h>

static bool static_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)v, (void)now_ns, (void)d;
	return false;
}

const struct resize_policy resize_static = {
    .name = "static",
    .help = "keep the number of threads as set",
    .decide = static_decide,
};

static const struct resize_policy *const policies[] = {&resize_static, &resize_seda, &resize_weir};

#define N_POLICIES (int)(sizeof(policies) / sizeof(policies[0]))

const struct resize_policy *resize_at(int i)
{
	return i >= 0 && i < N_POLICIES ? policies[i] : NULL;
}

const struct resize_policy *resize_find(const char *name)
{
	for (int i = 0; i < N_POLICIES; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}
