/* SPDX-License-Identifier: MIT */
/*
 * Handler of routes_table for the profile: what each thread has done at each stage, and sent where
 * (weir/profile.h). All numbers are totals, so a client gets the profile of a window of time by
 * reading twice and subtracting. docs/api.md describes the JSON. Admin thread only.
 */
#ifndef WEIR_ADMIN_PROFILE_H
#define WEIR_ADMIN_PROFILE_H

#include <jansson.h>

#include "routes.h"

void answer_profile(const struct call *c, struct reply *r);

/** Return the JSON of `p` as a new reference, or NULL if out of memory. */
json_t *profile_json(const struct weir_profile *p);

#endif
