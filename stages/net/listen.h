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

/** Bind every address of the configuration once per I/O thread. On failure fills `err`; sockets
 *  bound so far are closed by listen_close. Main thread. */
int listen_bind(struct net_server *srv, const struct net_conf *conf, struct weir_err *err);

/** Add a listener with the socket `fd` to `io`. Returns NULL if out of memory, and the caller still
 * owns `fd`. Main thread, before the I/O thread starts. */
struct listener *listen_add(struct net_io *io, int fd);

/** Report entry `i` of `listen:` as the cause of the error. Called in init and start of `st`. */
void listen_blame(struct weir_stage *st, int i);

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

/** Apply a change of io->pause.on. While it is set, nothing is accepted, and clients wait in the
 * backlog. */
void listen_pause(struct net_io *io);

/** Begin to stop: ignore new TCP handshakes, but accept clients whose handshake is complete or in
 * progress. */
void listen_drain(struct net_io *io);

/** Close the listeners shared with the new server, which accepts the clients in their backlog. */
void listen_leave(struct net_io *io);

/** Accept the clients in the backlog, then close the listeners. May be called twice. */
void listen_close(struct net_io *io);

#endif
