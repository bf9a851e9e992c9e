/* SPDX-License-Identifier: MIT */
/*
 * Handover between two servers across a reload: the new server takes the listening sockets when it
 * starts, and connections when the old one stops.
 *
 *   new server: start --same address--> shares the sockets, both accept
 *   old server: stop --each I/O thread--> closes its listeners, reads no further request
 *       a connection that can leave now --(net_calls.hand_over)--> a thread of the new one
 *       a request in progress is answered here, then its connection follows
 *
 * If there is no memory to hand a connection over, or to take it over, the attempt is repeated
 * every 50 ms. A connection that could not be taken over for 10 s is closed and counted
 * (NET_REFUSED_HANDED). A connection that could not be handed over stays with the old server. If it
 * is idle, the old server closes it when the linger time is over, as in any drain.
 *
 * If the graph of the new server cannot start after all, connections that it has taken over are
 * handed back in the same way.
 *
 * Unless memory is short, clients therefore notice nothing: no connection in use is closed, no
 * backlog is lost, and no byte is read twice. A new server that is itself being replaced passes on
 * the connections it receives.
 */
#ifndef WEIR_NET_HANDOVER_H
#define WEIR_NET_HANDOVER_H

#include "net/address.h"
#include "net/net.h"

/** A connection being handed over between two I/O threads: the first member of a struct of the
 * protocol, which has all that the connection needs. */
struct net_handed {
	struct net_handed *next;
	/* when the current owner first failed to take the connection over; 0 if it never failed */
	int64_t since_ns;
};

/** Clear the `shared` marks that an earlier, failed start left in the predecessor. Main thread,
 *  first in start. */
void handover_begin(const struct net_server *srv);

/**
 * Duplicate all sockets with which the predecessor of `srv` listens at `a` (as configured,
 * including port 0) into fd[]; the caller must close them. There may be more of them than I/O
 * threads now; all are taken, since closing one would reset the clients in its backlog. *passed is
 * set if a service manager also holds them. Returns their number, 0 if the predecessor does not
 * listen there, or WEIR_ESYS with errno. Main thread, in start.
 */
int handover_sockets(
    const struct net_server *srv, const struct address *a, int fd[NET_IO_MAX], bool *passed);

/** Return the file of the predecessor of `srv` at `a`, which must be a socket file; NULL if it has none
 * there. Main thread, in start. */
const struct socket_file *handover_file(const struct net_server *srv, const struct address *a);

/** Return the TLS state of the predecessor of `srv`; NULL without a predecessor or without TLS.
 * Main thread, in start. */
struct tls_site *handover_site(const struct net_server *srv);

/** Begin the handover: every connection that can leave is handed over now. I/O thread only. */
void handover_leave(struct net_io *io, struct net_server *successor);

/** Give `h` to the server that replaces the server of `from`. I/O thread only, during a
 * handover. */
void handover_send(const struct net_io *from, struct net_handed *h);

/** Try again later to hand connections over, because memory was short. I/O thread only. */
void handover_retry(struct net_io *io);

/** Run an iteration in `ns`. I/O thread only. */
void handover_look(struct net_io *io, int64_t ns);

/** Whether the server that takes over is running. If it is stopping, too, a response in progress
 * would have no more time there than here. I/O thread only, during a handover. */
bool handover_receiver_runs(const struct net_io *io);

/** Time after which a connection is refused that could not be taken over. 10 s, the default of
 * header_timeout of http.server, is a guess: a shortage that lasts longer is not momentary. */
#define HANDOVER_WAIT_NS 10000000000LL

/** Count and close the connection of `h`, which could not be taken over in that time. `why` is
 * logged, once: unless *logged is set. I/O thread only. */
void handover_refuse(struct net_io *io, struct net_handed *h, bool *logged, const char *why);

/** Take over the connections handed to `io`. Called by the I/O thread in each iteration. Costs two
 * loads if there are none. */
void handover_adopt(struct net_io *io);

/** Whether connections are still waiting to be taken over, because memory was short. */
static inline bool handover_keeps(const struct net_io *io)
{
	return io->handover.kept != NULL;
}

/** Close connections that were handed to `io` but that it has not taken over. Call this only
 * after no other thread can reach `io` any more. */
void handover_fini(struct net_io *io);

#endif
