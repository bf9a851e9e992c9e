/* SPDX-License-Identifier: MIT */
/*
 * Handlers of routes_table for the slowest requests and the time they spent in each stage
 * (requests.c), and for the requests that a tap shows (tap.c). docs/api.md describes the JSON.
 * Admin thread only.
 */
#ifndef WEIR_ADMIN_REQUESTS_H
#define WEIR_ADMIN_REQUESTS_H

#include <jansson.h>

#include "routes.h"

void answer_slowest(const struct call *c, struct reply *r);
void answer_tap(const struct call *c, struct reply *r);

/** Build the JSON of a request and the stages that it passed through. Returns a new reference, or
 *  NULL if out of memory. */
json_t *slow_json(const struct weir_slow *slow);

/** Copy the value of `key` in the query to buf[size], or "" if it is missing. Returns false if it
 *  is too long. */
bool query_text(const char *query, const char *key, char *buf, size_t size);

/** Set *class_id to the class named by the query, or to -1 for all classes. Returns false with the
 *  reply filled. */
bool query_class(const struct call *c, int *class_id, struct reply *r);

#endif
