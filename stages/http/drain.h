/* SPDX-License-Identifier: MIT */
/* Draining a server from main; see drain.c for what happens. */
#ifndef WEIR_HTTP_DRAIN_H
#define WEIR_HTTP_DRAIN_H

#include "http/server.h"

/**
 * Stop taking new connections, let idle ones send a last request for `linger_ns`, wait until every
 * connection is gone, at most until `until_ns` (CLOCK_MONOTONIC) or until the graph hurries; then
 * see to it that no event is made any more.
 */
void drain_run(struct http_server *srv, int64_t linger_ns, int64_t until_ns);

/** The last thing that an I/O thread does with the others. */
void drain_gone(struct http_io *io);
/** Wait until all that have started, which have been told to stop, are gone: then what they have may be freed. Main thread. */
void drain_wait_gone(struct http_server *srv);

#endif
