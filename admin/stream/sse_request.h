/* SPDX-License-Identifier: MIT */
/* The parameters of a request for /events: "?hz=4&last=17" and Last-Event-ID. Pure functions. */
#ifndef WEIR_ADMIN_LIVE_ASK_H
#define WEIR_ADMIN_LIVE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/request/head.h"

struct sse_request {
	int hz;        /* ticks a second: 0, 1 or 4 */
	bool has_last; /* whether the client has sent `last` */
	uint64_t last; /* id of the last event it received */
};

/** Return whether the request in p[0..n), which head_check found complete, is a GET request for
 *  /events. */
bool sse_wants(const char *p, size_t n);

/** Parse a request for which sse_wants returned true. Returns false with `problem` set to 400, or
 *  to 403 for a page of another origin. A numeric Last-Event-ID overrides `last=`, which is out of
 *  date when a browser reconnects and repeats its old query. */
bool sse_request_read(
    const char *p, size_t n, struct sse_request *ask, struct head_problem *problem);

#endif
