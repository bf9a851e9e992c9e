/* SPDX-License-Identifier: MIT */
/* Handlers of routes_table for the kill switch, which caps the admission mode of all stages.
 * docs/api.md describes the JSON. Admin thread only. */
#ifndef WEIR_ADMIN_OVERLOAD_H
#define WEIR_ADMIN_OVERLOAD_H

#include "routes.h"

void answer_overload(const struct call *c, struct reply *r);
void answer_set_overload(const struct call *c, struct reply *r);

#endif
