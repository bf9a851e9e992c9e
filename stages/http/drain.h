/* SPDX-License-Identifier: MIT */
/* Drains a server, on behalf of main; drain.c describes the steps. */
#ifndef WEIR_HTTP_DRAIN_H
#define WEIR_HTTP_DRAIN_H

#include "http/server.h"

/**
 * Stop taking new connections, let idle ones send a last request for `linger_ns`, and wait until
 * every connection is closed, at most until `until_ns` (CLOCK_MONOTONIC) or until the graph must
 * hurry. After that no more events are emitted.
 */
void drain_run(struct http_server *srv, int64_t linger_ns, int64_t until_ns);

/** Report that this I/O thread will no longer touch other threads. */
void drain_gone(struct http_io *io);
/** Wait until all started threads, which must have been asked to stop, have called drain_gone. Then
 * their memory may be freed. Main thread. */
void drain_wait_gone(struct http_server *srv);

#endif
