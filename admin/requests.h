/* SPDX-License-Identifier: MIT */
/*
 * The slowest requests and where their time went (requests.c), and those that a tap shows (tap.c): rows of routes_table.
 * docs/api.md has the shapes. The admin thread.
 */
#ifndef WEIR_ADMIN_REQUESTS_H
#define WEIR_ADMIN_REQUESTS_H

#include <jansson.h>

#include "routes.h"

void answer_slowest(const struct call *c, struct reply *r);
void answer_tap(const struct call *c, struct reply *r);

/** A request with its way, a new reference; NULL without memory. */
json_t *slow_json(const struct weir_slow *slow);

/** The value of `key` in the query, "" when it is not there, into buf[size]; false when it is too long. */
bool query_text(const char *query, const char *key, char *buf, size_t size);

/** Number of the class that the query names, -1 for all; false with the reply made. */
bool query_class(const struct call *c, int *class_id, struct reply *r);

#endif
