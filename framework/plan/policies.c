/* SPDX-License-Identifier: MIT */
/* Lists the names of policies from their tables; see policies.h. */
#include "plan/policies.h"

#include "admission/admission.h"
#include "base/text.h"
#include "control/batch.h"
#include "control/resize.h"
#include "control/width.h"
#include "sched/next.h"
#include "sched/policy.h"

/* Maximum number of policies considered for a suggestion. */
#define POLICIES_MAX 32

static bool option_set(struct weir_option *option, const char *name, const char *help)
{
	*option = (struct weir_option){name, help};
	return true;
}

/* `auto` stands for one of two policies (weir_spec_admission). */
bool policies_admission(int i, struct weir_option *option)
{
	const struct admission_policy *p = admission_at(i - 1);

	if (i == 0)
		return option_set(option, "auto", "weir where there is a queue, else none");
	return p && option_set(option, p->name, p->help);
}

bool policies_resize(int i, struct weir_option *option)
{
	const struct resize_policy *p = resize_at(i);

	return p && option_set(option, p->name, p->help);
}

bool policies_batch(int i, struct weir_option *option)
{
	const struct batch_policy *p = batch_at(i);

	return p && option_set(option, p->name, p->help);
}

bool policies_sched(int i, struct weir_option *option)
{
	const struct sched_policy *p = sched_policy_at(i);
	int n = 0;

	if (p)
		return option_set(option, p->name, p->help);
	while (sched_policy_at(n))
		n++;
	const struct next_policy *next = next_policy_at(i - n);
	return next && option_set(option, next->name, next->help);
}

bool policies_width(int i, struct weir_option *option)
{
	const struct width_policy *p = width_at(i);

	return p && option_set(option, p->name, p->help);
}

const char *policies_hint(bool (*option)(int i, struct weir_option *option), const char *name,
    char hint[POLICIES_HINT_BYTES])
{
	struct text_out out = {hint, POLICIES_HINT_BYTES, 0};
	const char *names[POLICIES_MAX];
	struct weir_option one;
	int n = 0;

	while (n < POLICIES_MAX && option(n, &one))
		names[n++] = one.name;
	const char *near = weir_nearest(name, names, n);
	text_put(&out, near ? "did you mean '" : "there are ");
	text_put(&out, near ? near : "");
	text_put(&out, near ? "'?" : "");
	for (int i = 0; !near && i < n; i++) {
		text_put(&out, i > 0 ? ", " : "");
		text_put(&out, names[i]);
	}
	text_end(&out);
	return hint;
}
