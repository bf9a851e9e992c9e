/* SPDX-License-Identifier: MIT */
/* The slowest requests and where their time went: a row of routes_table. docs/api.md has the shape. The admin thread. */
#ifndef WEIR_ADMIN_REQUESTS_H
#define WEIR_ADMIN_REQUESTS_H

#include "routes.h"

void answer_slowest(const struct call *c, struct reply *r);

#endif
