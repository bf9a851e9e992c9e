/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: bound by main before the I/O threads start, then owned by those threads.
 *
 *   WATCHED --no descriptors, or full--> PAUSED --a connection closed, or 50 ms later--> WATCHED
 *   either  --drain: new handshakes are ignored, the backlog is emptied--> closed
 */
#ifndef WEIR_NET_LISTEN_H
#define WEIR_NET_LISTEN_H

#include "net/net.h"

/** Watch the listeners of `io`. Returns 0 or WEIR_ESYS. */
int listen_watch(struct net_io *io);

/** Stop accepting because the server is full, until listen_recheck or a timer resumes it. No effect
 * while the listeners are being closed (accept_rest). */
void listen_hold(struct net_io *io);

/** Check again whether the waiting new connection can be admitted, and resume accepting if it was
 * paused, because a connection of `io` was closed or memory was freed. The waiting connection is
 * admitted before other clients. */
void listen_recheck(struct net_io *io);

/** Resume accepting if it was paused, unless a new connection is waiting for a slot or memory is
 * short. */
void listen_resume(struct net_io *io);

/** Begin to watch the listeners anew, so that epoll looks whether clients are in their backlogs. */
void listen_again(struct net_io *io);

/** Watch the listeners, or no longer, after a change of io->pause.on or per_thread_full. While it is set, nothing is accepted, and clients wait in the
 * backlog. */
void listen_pause(struct net_io *io);

/** Begin to stop: ignore new TCP handshakes, but accept clients whose handshake is complete or in
 * progress. */
void listen_drain(struct net_io *io);

/** Close the listeners shared with the new server, which accepts the clients in their backlog. */
void listen_leave(struct net_io *io);

/** Accept the clients in the backlog, then close the listeners. May be called twice. In a drain with
 * `per_thread`, they stay open once the thread is full, and the call must be repeated when it has
 * room. */
void listen_close(struct net_io *io);

#endif
