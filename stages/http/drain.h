/* SPDX-License-Identifier: MIT */
/* Drains a server, in the main thread; drain.c describes the steps. */
#ifndef WEIR_HTTP_DRAIN_H
#define WEIR_HTTP_DRAIN_H

#include "http/server.h"

/**
 * Stop accepting connections, let idle ones send a last request for `linger_ns`, and wait until
 * every connection is closed, at most until `until_ns` (CLOCK_MONOTONIC) or until the graph must
 * hurry. After that no more events are emitted.
 */
void drain_run(struct http_server *srv, int64_t linger_ns, int64_t until_ns);

/** Report that this I/O thread will no longer access the data of other threads. */
void drain_gone(struct http_io *io);
/** Wait until all threads that were started have called drain_gone, after which their memory may be
 * freed. They must have been signalled to stop. Main thread. */
void drain_wait_gone(struct http_server *srv);

#endif
