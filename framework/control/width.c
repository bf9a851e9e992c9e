/* SPDX-License-Identifier: MIT */
/* The table of width policies, and the policy `static`, which keeps the maximum. */
#include "control/width.h"

#include <stdio.h>
#include <string.h>

static bool static_decide(
    void *state, const struct width_view *v, int64_t now_ns, struct width_decision *d)
{
	(void)state, (void)now_ns;
	d->width = d->target = v->max;
	snprintf(d->rule, sizeof(d->rule), "policy static stays at max");
	return v->width != v->max;
}

const struct width_policy width_static = {
    .name = "static",
    .help = "always allow width.max events in work",
    .decide = static_decide,
};

static const struct width_policy *const policies[] = {&width_static, &width_weir};

#define N_POLICIES (int)(sizeof(policies) / sizeof(policies[0]))

const struct width_policy *width_at(int i)
{
	return i >= 0 && i < N_POLICIES ? policies[i] : NULL;
}

const struct width_policy *width_find(const char *name)
{
	for (int i = 0; i < N_POLICIES; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}
