/* SPDX-License-Identifier: MIT */
/* The names of all policies, which are the values of knobs such as `policy:` and `schedule:`. */
#ifndef WEIR_PLAN_POLICIES_H
#define WEIR_PLAN_POLICIES_H

#include <stdbool.h>

#include <weir/knob.h>

/* One function per kind of policy, for the member `option` of knob rows (weir/knob.h). */
bool policies_admission(int i, struct weir_option *option);
bool policies_resize(int i, struct weir_option *option);
bool policies_batch(int i, struct weir_option *option);
bool policies_sched(int i, struct weir_option *option);
bool policies_width(int i, struct weir_option *option);

/** Size of the text that policies_hint writes: that of weir_err.hint. */
#define POLICIES_HINT_BYTES 160

/** Write a hint for the unknown policy `name` into `hint`: the name from `option` that is spelt
 *  most like it, or all names if none is similar. Returns `hint`. */
const char *policies_hint(bool (*option)(int i, struct weir_option *option), const char *name,
    char hint[POLICIES_HINT_BYTES]);

#endif
