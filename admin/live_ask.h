/* SPDX-License-Identifier: MIT */
/* What a request of /events asks for: "?hz=4&last=17" and Last-Event-ID. Pure functions. */
#ifndef WEIR_ADMIN_LIVE_ASK_H
#define WEIR_ADMIN_LIVE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "head.h"

struct live_ask {
	int hz;        /* ticks a second: 0, 1 or 4 */
	bool has_last; /* it has been here before: */
	uint64_t last; /* id of the last event it got */
};

/** Is the request in p[0..n), which head_check found whole, a GET of /events? */
bool live_wants(const char *p, size_t n);

/** Read such a request. false: `problem` has 400, or 403 for a page from elsewhere. An id in
 *  Last-Event-ID counts more than one in the query, since a browser that comes back repeats its
 *  query; one that is no number counts for nothing. */
bool live_ask_read(const char *p, size_t n, struct live_ask *ask, struct head_problem *problem);

#endif
