/* SPDX-License-Identifier: MIT */
/*
 * Bytes in and out of a connection, plain or TLS, fast or slow.
 *
 * Slow readers and writers get bytes by their rate every PACE_TICK_NS, from a wheel of the worker,
 * like a link of that speed. One thread.
 */
#ifndef WEIR_LOAD_CONN_IO_H
#define WEIR_LOAD_CONN_IO_H

#include <sys/types.h>

#include "load/conn.h"

/** How often a slow connection moves bytes. Guess: fine against the seconds that slowness is
 *  about. */
#define PACE_TICK_NS 10000000

/** Begin a connection: 0 when it is there or under way, or -1 with the reason in errno. */
int conn_io_connect(struct worker *w, struct conn *c);

/** Close the socket and what belongs to it. */
void conn_io_close(struct worker *w, struct conn *c);

/** Write what is pending: 0, or IO_*; IO_AGAIN when some of it is left. */
int conn_io_write(struct worker *w, struct conn *c);

/** Read into the worker's buffer: bytes, 0 at the end, or IO_*. Clears c->readable when the
 *  socket is known to be empty. */
ssize_t conn_io_read(struct worker *w, struct conn *c);

/** Flight `i` of those under way on `c`. */
struct flight *conn_flight(const struct worker *w, const struct conn *c, int i);

#endif
