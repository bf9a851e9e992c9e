/* SPDX-License-Identifier: MIT */
/*
 * Accepts clients on behalf of an I/O thread that is blocked in a handler (weir_loop_held). Each
 * I/O thread has its own listening sockets, and the kernel continues to assign clients to those of
 * the blocked thread, which cannot accept them.
 *
 *   RUNNING --another thread is blocked--> STANDING IN: also watches duplicates of the sockets of
 *                                          that thread
 *   STANDING IN --that thread continues, or a reload--> closes the duplicates
 *               --the server stops--> accepts the rest of the backlog, closes the duplicates
 *
 * All other threads watch the duplicates, and the kernel wakes one of them per client
 * (EPOLLEXCLUSIVE). Open connections of the blocked thread wait.
 */
#ifndef WEIR_NET_STAND_IN_H
#define WEIR_NET_STAND_IN_H

#include "net/net.h"

/** Begin to stand in for threads that are blocked, and stop for those that no longer are. Called by
 * the I/O thread in each iteration; costs a relaxed load when there is nothing to do. */
void stand_in_follow(struct net_io *io);

/** Close the duplicates; the owner keeps its sockets. I/O thread only. */
void stand_in_end(struct net_io *io);

#endif
