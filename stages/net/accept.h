/* SPDX-License-Identifier: MIT */
/* Accepts clients. When the server is full, a slot is freed by eviction, or the client is refused.
 * Runs in the I/O thread. */
#ifndef WEIR_NET_ACCEPT_H
#define WEIR_NET_ACCEPT_H

#include "net/net.h"

/** Accept clients from the listening socket `fd`, at most ACCEPT_RUN of them. May pause all
 * listeners (listen_hold). */
void accept_some(struct net_io *io, int fd);

/** Decide again about the new connection that waits for a slot, if there is one. If a slot is free
 * now, the connection is admitted. If not, and `answered` is false, it continues to wait. `answered`
 * means that the thread from which an eviction was requested has replied, or that the time limit
 * has expired: then another eviction is requested, or the connection is refused. Accepting resumes
 * unless the server is still full. Must not be called while iterating over a list of connections. */
void accept_newcomer(struct net_io *io, bool answered);

/** Make sure that there is a reserve descriptor (net_accept.reserve_fd), which can be closed to
 * accept one more client when descriptors run out. Returns false only if descriptors have run out:
 * if the reserve cannot be created for another reason, no client is refused because of that. */
bool accept_reserve(struct net_io *io);

/** Admit or refuse the waiting new connection, if any, because accepting stops. It is admitted only
 * in a drain, and only if a slot is free or this thread can free one. */
void accept_end(struct net_io *io);

/** Accept all clients in the backlog of `fd`, which is about to be closed, because closing it would
 * reset them. Accepts at most as many as the backlog holds; those for which there is no slot are
 * refused. */
void accept_rest(struct net_io *io, int fd);

#endif
