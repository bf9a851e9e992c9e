/* SPDX-License-Identifier: MIT */
/* Admission policy `none`: admits everything, so only the queue's own limit refuses events. */
#include "admission/admission.h"

static void none_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

static int none_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)v, (void)class_id, (void)refused, (void)reason;
	return n;
}

const struct admission_policy admission_none = {
    .name = "none",
    .help = "admit everything; only the queue limit refuses",
    .init = none_init,
    .admit = none_admit,
};
