/* SPDX-License-Identifier: MIT */
/* Drains a server, in the main thread; drain.c describes the steps. */
#ifndef WEIR_NET_DRAIN_H
#define WEIR_NET_DRAIN_H

#include "net/net.h"

/**
 * Stop accepting connections, let idle ones send a last request for `linger_ns`, and wait until
 * every connection is closed, at most until `until_ns` (CLOCK_MONOTONIC) or until the graph must
 * hurry. After that no more events are emitted.
 */
void drain_run(struct net_server *srv, int64_t linger_ns, int64_t until_ns);

/** Follow the main thread through the phases of a drain, and report when no connection is left.
 * drain_follow is called before the ready connections are processed and drain_report after,
 * once per iteration each, so the connections that a phase closes no longer exist when it is
 * reported. */
void drain_follow(struct net_io *io);
void drain_report(struct net_io *io);

/** Report that this I/O thread will no longer access the data of other threads. */
void drain_gone(struct net_io *io);
/** Wait until all threads that were started have called drain_gone, after which their memory may be
 * freed. They must have been signalled to stop. Main thread. */
void drain_wait_gone(struct net_server *srv);

#endif
