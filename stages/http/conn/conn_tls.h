/* SPDX-License-Identifier: MIT */
/* A connection with TLS (net/tls/tls_conn.h): what a handshake causes in the connection, and how
 * the steps of a handshake reach their stage. I/O thread only. */
#ifndef WEIR_HTTP_CONN_TLS_H
#define WEIR_HTTP_CONN_TLS_H

#include <stdint.h>

struct conn;
struct tls_conn;

/** The outlet of http.server to the stage that does handshakes. */
#define TLS_OUTLET 1

/** Create the TLS state of `c`, a new connection of a server with TLS. Without memory,
 * c->net.tls stays NULL. */
void conn_tls_begin(struct conn *c);

/** Make `t` (may be NULL) the TLS of `c`, and count its memory. Returns the previous one, which the
 * caller then owns. */
struct tls_conn *conn_tls_set(struct conn *c, struct tls_conn *t);

/** Make `t` the TLS of `c`, which continues a connection of another I/O thread. */
void conn_tls_adopt(struct conn *c, struct tls_conn *t);

/** Handle `events`, for which the socket of `c` is ready. Returns the events that the caller must
 * still handle, by reading requests and writing responses. */
uint32_t conn_tls_ready(struct conn *c, uint32_t events);

/** Count a handshake that exceeded its time limit. */
void conn_tls_timed_out(struct conn *c);

#endif
