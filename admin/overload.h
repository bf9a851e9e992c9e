/* SPDX-License-Identifier: MIT */
/* The kill switch over the admission of all stages: rows of routes_table. docs/api.md has the shapes. The admin thread. */
#ifndef WEIR_ADMIN_OVERLOAD_H
#define WEIR_ADMIN_OVERLOAD_H

#include "routes.h"

void answer_overload(const struct call *c, struct reply *r);
void answer_set_overload(const struct call *c, struct reply *r);

#endif
