/* SPDX-License-Identifier: MIT */
/* Draining a server from main; see drain.c for what happens. */
#ifndef WEIR_HTTP_DRAIN_H
#define WEIR_HTTP_DRAIN_H

#include "http/server.h"

/** Begin: no new connections, idle ones have `linger_ns` for a last request. */
void drain_start(struct http_server *srv, int64_t linger_ns);

/** Wait until every connection is gone, at most until `until_ns` (CLOCK_MONOTONIC). */
void drain_wait(struct http_server *srv, int64_t until_ns);

#endif
