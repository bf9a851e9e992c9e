/* SPDX-License-Identifier: MIT */
/*
 * Input and output of a connection, plain or TLS, fast or slow.
 *
 * A slow connection imitates a slow link: once per PACE_TICK_NS, triggered by a timing wheel of the
 * worker, it reads or writes as many bytes as its rate allows. One thread.
 */
#ifndef WEIR_LOAD_CONN_IO_H
#define WEIR_LOAD_CONN_IO_H

#include <sys/types.h>

#include "load/conn.h"

/** Interval at which a slow connection moves bytes. 10 ms is a guess: slow transfers take
 * seconds. */
#define PACE_TICK_NS 10000000

/** Starts connecting. Returns 0 if the connection is established or in progress, or -1 with the
 * reason in errno. */
int conn_io_connect(struct worker *w, struct conn *c);

/** Closes the socket and frees its resources. */
void conn_io_close(struct worker *w, struct conn *c);

/** Writes pending bytes. Returns 0 if all were written, or IO_*; IO_AGAIN means that some are
 * left. */
int conn_io_write(struct worker *w, struct conn *c);

/** Reads into the worker's buffer. Returns the number of bytes read, 0 at the end of the stream, or
 * IO_*. Clears c->readable if the socket is known to be empty. */
ssize_t conn_io_read(struct worker *w, struct conn *c);

/** Returns the `i`-th request in flight on `c`. */
struct flight *conn_flight(const struct worker *w, const struct conn *c, int i);

#endif
