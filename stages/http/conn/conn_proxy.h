/* SPDX-License-Identifier: MIT */
/* A connection that begins with a PROXY header (net/proxy_header.h), since it comes from a proxy in
 * `trust` and `client_from` is proxy. I/O thread only. */
#ifndef WEIR_HTTP_CONN_PROXY_H
#define WEIR_HTTP_CONN_PROXY_H

#include <stdint.h>

struct conn;

/** Wait for the header of `c`, a new connection. Without memory, c->proxy stays NULL. */
void conn_proxy_begin(struct conn *c);

/** Read the header, for whose bytes the socket is ready. When it is complete, the connection has the
 * address of the client, and continues as a new one. */
void conn_proxy_ready(struct conn *c);

/** Count a header that was not complete within header_timeout. */
void conn_proxy_timed_out(struct conn *c);

/** Free what is left of the header; none is allowed. */
void conn_proxy_drop(struct conn *c);

#endif
