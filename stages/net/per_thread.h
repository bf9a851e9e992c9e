/* SPDX-License-Identifier: MIT */
/*
 * Servers whose I/O threads have at most `per_thread` connections each; with 1, a thread per
 * connection.
 *
 * All I/O threads watch the same listening sockets, with EPOLLEXCLUSIVE, so that a client never waits
 * in the backlog of a thread that has no room. A thread without room does not watch them:
 *
 *   ROOM: watches, accepts one client at a time --as many connections as it may have--> FULL
 *   FULL --a connection has ended, and its requests have returned--> ROOM
 *
 * Connections that a predecessor hands over wait in a list of the server until a thread has room. If none
 * has, a thread closes a connection of its own that is between two requests. A connection that has waited
 * for 10 s is refused.
 *
 * The kernel tells one thread of each client. A thread that becomes full may have been told of more
 * clients than it has accepted, at another socket. So it looks whether one waits, and passes it on: it
 * tells another thread with room to watch the sockets anew. The same is done for handed connections.
 *
 * Concurrency: calls are made in the I/O thread of `io`, unless stated otherwise.
 */
#ifndef WEIR_NET_PER_THREAD_H
#define WEIR_NET_PER_THREAD_H

#include "net/net.h"

/** Whether the I/O threads of the server have a limit of connections. */
static inline bool per_thread_on(const struct net_io *io)
{
	return WEIR_UNLIKELY(io->srv->per_thread > 0);
}

/** Whether `io` may have no further connection. None may have any before all threads have started, which
 * takes a while if they are many: a server that accepts clients would seem to be up. */
static inline bool per_thread_full(const struct net_io *io)
{
	const struct net_server *srv = io->srv;

	return per_thread_on(io) &&
	       (io->drain.done || io->n_conns + (io->accept.newcomer.fd != -1) >= srv->per_thread ||
		   /* pairs with start_loops */
		   atomic_load_explicit(&srv->n_loops, memory_order_acquire) < srv->n_io);
}

/** Cease to watch the listeners if `io` is full now. Called after each accept. */
void per_thread_accepted(struct net_io *io);

/** Watch the listeners, or no longer, as there is room; take over waiting connections while there is;
 * follow what other threads have told. Called in each iteration. Costs a load if there is no limit. */
void per_thread_follow(struct net_io *io);

/** The same at the end of an iteration, when closed connections are freed. Then, if a connection waits that
 * was handed over, close one that is between two requests. */
void per_thread_report(struct net_io *io);

/** Let `h` wait for a thread of `to` with room. `now_ns` is the present time, and `i` the number of the
 * thread to be told first. Any thread. */
void per_thread_give(struct net_server *to, struct net_handed *h, int64_t now_ns, int i);

/** Count the threads that are full, and the clients that wait (ops->clients). Any thread. */
void per_thread_clients(struct net_server *srv, struct weir_clients *clients);

/** Close the connections that still wait. Only after no other thread can reach the server. */
void per_thread_fini(struct net_io *io);

#endif
