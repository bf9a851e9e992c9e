/* SPDX-License-Identifier: MIT */
/*
 * Two servers across a reload: the heir takes listening sockets when it starts, connections when the other one stops.
 *
 *   heir:   start --same address--> shares the sockets, both accept
 *   leaver: stop --each I/O thread--> closes its listeners, reads no further request
 *           a connection between two requests --(descriptor, bytes not yet used)--> an I/O thread of the heir
 *           a request under way is answered here, then its connection follows
 *
 * Without memory to hand a connection over, or to take it in, it is tried again every 50 ms. What could not be taken in for 10 s
 * is given up: answered 503 if its client has begun a request in the clear, else closed, and counted (refused_handed). What could not
 * be handed over stays where it is; if it is idle it ends with the linger time, as in any drain.
 *
 * If the heir's graph can not start after all, its connections go back the same way.
 *
 * So a client notices nothing: no connection is closed, no backlog lost, no byte read twice. An heir that is itself
 * being replaced passes on what comes.
 */
#ifndef WEIR_HTTP_HEIR_H
#define WEIR_HTTP_HEIR_H

#include "http/address.h"
#include "http/server.h"

struct conn;

/** Forget what a predecessor was told before: a start that failed behind this point. Main thread, first in start. */
void heir_begin(const struct http_server *srv);

/**
 * Descriptors of all sockets with which the predecessor of `srv` listens at `a`, as the configuration says it (port 0
 * too), into fd[]; the caller's to close. All, however few threads there are now: one that was closed would reset who is
 * in its backlog. *passed says whether a service manager has them, too. Returns how many, 0 when it does not listen
 * there, WEIR_ESYS with errno. Main thread, in start.
 */
int heir_sockets(
    const struct http_server *srv, const struct address *a, int fd[SERVER_IO_MAX], bool *passed);

/** What the predecessor of `srv` has of TLS, NULL when there is none. Main thread, in start. */
struct tls_site *heir_site(const struct http_server *srv);

/** Is `io` handing its connections over? */
static inline bool heir_leaving(const struct http_io *io)
{
	return io->heir != NULL;
}

/** Begin to: every connection that is between two requests goes now. The I/O thread. */
void heir_leave(struct http_io *io, struct http_server *heir);

/** Hand `c` over if it is between two requests; here it is closed then. Without memory it stays, and it is tried again. The I/O thread, while leaving. */
bool heir_take_leave(struct conn *c);

/** Take in the connections that were handed to `io`. The I/O thread, each turn: two loads when there is none. */
void heir_adopt(struct http_io *io);

/** Are there connections that there was no memory to take in yet? */
static inline bool heir_keeps(const struct http_io *io)
{
	return io->kept != NULL;
}

/** Close what was handed over and not taken in. When no other thread knows `io` any more. */
void heir_fini(struct http_io *io);

#endif
