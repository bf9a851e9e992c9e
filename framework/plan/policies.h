/* SPDX-License-Identifier: MIT */
/* The names that the knobs of policies may have, from the tables of the policies. */
#ifndef WEIR_PLAN_POLICIES_H
#define WEIR_PLAN_POLICIES_H

#include <stdbool.h>

#include <weir/knob.h>

/* Members `option` of knob rows. */
bool policies_admission(int i, struct weir_option *option);
bool policies_resize(int i, struct weir_option *option);
bool policies_batch(int i, struct weir_option *option);
bool policies_sched(int i, struct weir_option *option);
bool policies_width(int i, struct weir_option *option);

/** Size of the text that policies_hint writes: that of weir_err.hint. */
#define POLICIES_HINT_BYTES 160

/** Write into `hint` which of the names of `option` the unknown `name` may stand for: the one that
 *  is spelt like it, else all of them. Returns `hint`. */
const char *policies_hint(bool (*option)(int i, struct weir_option *option), const char *name,
    char hint[POLICIES_HINT_BYTES]);

#endif
