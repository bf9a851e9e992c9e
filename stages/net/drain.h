/* SPDX-License-Identifier: MIT */
/* Drains a server, in the main thread; drain.c describes the steps. */
#ifndef WEIR_HTTP_DRAIN_H
#define WEIR_HTTP_DRAIN_H

#include "http/conn/io.h"

/**
 * Stop accepting connections, let idle ones send a last request for `linger_ns`, and wait until
 * every connection is closed, at most until `until_ns` (CLOCK_MONOTONIC) or until the graph must
 * hurry. After that no more events are emitted.
 */
void drain_run(struct http_server *srv, int64_t linger_ns, int64_t until_ns);

/** Follow the main thread through the phases of a drain, and report when no connection is left.
 * io_follow_drain is called before the ready connections are processed and io_report_drained after,
 * once per iteration each, so the connections that a phase closes no longer exist when it is
 * reported. */
void io_follow_drain(struct http_io *io);
void io_report_drained(struct http_io *io);

/** Report that this I/O thread will no longer access the data of other threads. */
void drain_gone(struct http_io *io);
/** Wait until all threads that were started have called drain_gone, after which their memory may be
 * freed. They must have been signalled to stop. Main thread. */
void drain_wait_gone(struct http_server *srv);

#endif
