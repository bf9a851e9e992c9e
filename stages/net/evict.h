/* SPDX-License-Identifier: MIT */
/*
 * Eviction across I/O threads.
 *
 * Only the I/O thread of a connection may close it. Each thread therefore publishes the start of
 * the longest wait among its connections without a request. If a thread cannot admit a new
 * connection only because the server is full, and has no connection of its own to close, it
 * requests an eviction from the thread with the longest wait, and pauses its own listeners:
 *
 *   requester: evict_ask --wanted, bit in `asked`, wake--> listeners paused, the new connection
 *              waits (up to 50 ms, listen.c)
 *   other:     next iteration: if still wanted, evicts one (net_calls.evict), else sets
 *              evict.none --evict.news, wake-->
 *   requester: next iteration: admits the new connection, accepts again
 *
 * Nothing is guaranteed: another client may take the slot first, or the connection to be evicted
 * may have sent a request. The requester then repeats its request, at most as many times per new
 * connection as there are threads, but never to a thread that has replied that it has nothing to
 * evict (evict.none). A thread that has not replied yet does not get a second request, so a thread
 * that hangs does not delay the replies of others. The new connection waits until there is a reply
 * or the time limit expires. If a connection of the requester closes in the meantime and frees all
 * that the new one needs (EVICT_CLOSED), the new one is admitted without using up an attempt. If
 * the requester finds a free slot just as the other thread evicts a connection for it, the slot
 * freed by the eviction goes to the next client.
 *
 * Concurrency: each call runs in the I/O thread of `io`; several threads of a server may make such
 * calls at the same time.
 */
#ifndef WEIR_NET_EVICT_H
#define WEIR_NET_EVICT_H

#include "net/net.h"

/** Request that another I/O thread evict a connection that is waiting for a request. `wanted` has
 * bits of enum evict_wanted. `first` means that this is the first request for this new connection.
 * Returns whether a request was sent; if so, the caller stores the new connection and pauses its
 * listeners until accept_newcomer. */
bool evict_ask(struct net_io *io, unsigned wanted, bool first);

/** Withdraw the request for an eviction, because the new connection has been admitted, refused or
 * closed. */
void evict_unask(struct net_io *io);

/** Make the next evict_follow check whether the new connection can be admitted now, because another
 * connection was closed. */
void evict_retry(struct net_io *io);

/** Serve the eviction requests of other threads; if there is news for this thread, admit its new
 * connection or resume accepting. Called in each iteration. Costs a load when there is nothing to
 * do. */
void evict_follow(struct net_io *io);

/** Publish the start of the longest wait among connections with a slot, if it has changed. Called
 * at the end of each iteration. */
void evict_tell(struct net_io *io);

#endif
